//go:build linux || darwin

package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// TestOSLockWithSecondName locks a file that has a second name: Lock must not overwrite
// its contents.
func TestOSLockWithSecondName(t *testing.T) {
	dir := t.TempDir()
	precious, name := filepath.Join(dir, "precious"), filepath.Join(dir, "db", "LOCK")
	const text = "a text that must not change and is longer than the description of a holder\n"
	if err := os.WriteFile(precious, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(precious, name); err != nil {
		t.Fatal(err)
	}
	lock, err := vfs.OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := vfs.OS().Lock(name); err == nil {
		t.Error("locked twice")
		_ = second.Close()
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(precious); err != nil || string(got) != text {
		t.Errorf("the other name holds %q, %v", got, err)
	}
}
