//go:build linux || darwin

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFollowsNoLink writes beside a link of the name that the unfinished
// file takes, which anybody who may write to the directory can put there.
func TestFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious, name := filepath.Join(dir, "precious"), filepath.Join(dir, "out.csv")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, ".out.csv.partial")); err != nil {
		t.Fatal(err)
	}
	out, err := createAtomic(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Write([]byte("rows"))
	if err := out.Close(err); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{precious: "precious", name: "rows"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}

// TestErrorsNameTheFile fails in each way: what is said is of the file that was
// asked for, and what was there before still is.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.csv")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "partial") {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != "before" {
			t.Errorf("%s: the file holds %q, %v", what, got, err)
		}
	}
	_, err := createAtomic(filepath.Join(dir, "missing", "out.csv"))
	check("no directory", err)
	out, err := createAtomic(name)
	if err != nil {
		t.Fatal(err)
	}
	check("failed work", out.Close(errors.New("work failed")))
	if out, err = createAtomic(name); err != nil {
		t.Fatal(err)
	}
	if err := out.file.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Write([]byte("rows"))
	check("write", err)
	check("close", out.Close(nil))
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the directory holds %v, %v", names, err)
	}
}
