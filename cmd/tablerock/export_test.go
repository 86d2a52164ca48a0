//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTargetFollowsNoLink writes beside a link of the name that the unfinished
// file takes, which anybody who may write to the directory can put there.
func TestTargetFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious, name := filepath.Join(dir, "precious"), filepath.Join(dir, "out.csv")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, ".out.csv.partial")); err != nil {
		t.Fatal(err)
	}
	out, err := newTarget(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.file.WriteString("rows")
	if err := out.close(err); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{precious: "precious", name: "rows"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}
