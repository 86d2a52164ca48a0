package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFillZeros(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	for _, end := range []int64{2, 4, 200 << 10} {
		if err := f.fillZeros(end); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, max(end, 4))
		copy(want, "kept")
		if !bytes.Equal(got, want) {
			t.Errorf("filled to %d: %d bytes, or not the right ones", end, len(got))
		}
	}
}

func TestReadHolder(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "another process",
		"\n":                        "another process",
		"pid 1 on host h\nand more": "pid 1 on host h",
		"pid 1 on host h":           "pid 1 on host h",
		"a\x00b":                    `"a\x00b"`,
		"\x1b[31mred":               `"\x1b[31mred"`,
		strings.Repeat("x", 500):    strings.Repeat("x", 128),
	} {
		if got := readHolder(strings.NewReader(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
