//go:build linux || darwin

package bulk

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAckOfOutput writes acknowledgements to a link to standard output, which a shell has opened
// to append: what was there stays.
func TestAckOfOutput(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "log"), filepath.Join(dir, "stdout")
	if err := os.WriteFile(name, []byte("before "), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout = f
	ack, err := NewAckFile(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ack.WriteString("acknowledged"); err != nil {
		t.Fatal(err)
	}
	if err := ack.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "before acknowledged" {
		t.Errorf("the file contains %q, error %v", got, err)
	}
}
