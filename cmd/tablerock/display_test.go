package main

import (
	"strings"
	"testing"
)

func TestDisplayText(t *testing.T) {
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
		if got := displayText(c.in); got != c.want {
			t.Errorf("displayText(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestDisplayWidth(t *testing.T) {
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
		if got := displayWidth(s); got != want {
			t.Errorf("displayWidth(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestFormatCountAndSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", 1234567: "1,234,567"} {
		if got := formatCount(n); got != want {
			t.Errorf("formatCount(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 3 << 30: "3.0 GiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
	}
}
