package output

import (
	"strings"
	"testing"
)

func TestCell(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{`say "hi"`, `say "hi"`},
		{"表 😀", "表 😀"},
		{"a\nb\tc\x1b[0m", `a\nb\tc\x1b[0m`},
		{"\xff", `\xff`},
		{long, long[:59] + "…"},
		{strings.Repeat("表", 40), strings.Repeat("表", 29) + "…"},
		{strings.Repeat("🇩🇪", 40), strings.Repeat("🇩🇪", 29) + "…"},
	} {
		if got := Cell(c.in); got != c.want {
			t.Errorf("Cell(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"":        0,
		"plain":   5,
		"e\u0301": 1, // e and a combining accent
		"表":       2,
		"한글":      4,
		"ｗｉｄｅ":    8, // full-width forms
		"…":       1, // of ambiguous width
		"😀":       2,
		"❤️":      2, // a heart with the variation selector of an emoji
		"🇩🇪":      2, // two letters that make a flag
		"👩🏽":      2, // a person with a skin tone
		"กำ":      2, // Thai
	} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
