package main

import (
	"strings"
	"testing"
)

func TestDisplay(t *testing.T) {
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
	} {
		if got := displayText(c.in); got != c.want {
			t.Errorf("display(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCountAndSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", 1234567: "1,234,567"} {
		if got := formatCount(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 3 << 30: "3.0 GiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
