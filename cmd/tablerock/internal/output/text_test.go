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
		{long[:60] + "\u0301", long[:60] + "\u0301"}, // a combining accent
		{long[:59] + "\u0301xx", long[:59] + "\u0301…"},
		{long[:59] + "\u0e33xx", long[:58] + "…"}, // a vowel that belongs to the letter before it
		{long[:60] + "e\u0301", long[:59] + "…"},
		{long[:59] + "表", long[:59] + "…"},
		{long[:58] + "表", long[:58] + "表"},
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
		"":             0,
		"plain":        5,
		"plan e\u0301": 6,
		"e\u0301":      1, // e and a combining accent
		"表":            2,
		"한글":           4,
		"ｗｉｄｅ":         8, // full-width forms
		"…":            1, // of ambiguous width
		"😀":            2,
		"❤️":           2, // a heart with the variation selector of an emoji
		"🇩🇪":           2, // two letters that make a flag
		"👩🏽":           2, // a person with a skin tone
		"กำ":           2, // Thai
	} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
