package main

import "testing"

func TestAbsolute(t *testing.T) {
	const at = "https://github.com/tablerock-db/tablerock/blob/abc/"
	for in, want := range map[string]string{
		"[docs/serve.md](docs/serve.md#postgresql) is": "[docs/serve.md](" + at + "docs/serve.md#postgresql) is",
		"[MIT](LICENSE)":               "[MIT](" + at + "LICENSE)",
		"[x](https://example.com/a)":   "[x](https://example.com/a)",
		"[Contents](#contents)":        "[Contents](#contents)",
		"no link (docs/serve.md) here": "no link (docs/serve.md) here",
	} {
		if got := string(absolute([]byte(in), "abc")); got != want {
			t.Errorf("absolute(%q) = %q, want %q", in, got, want)
		}
	}
}
