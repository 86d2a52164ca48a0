//go:build linux || darwin

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write writes the file called name.
func write(t *testing.T, name, text string) {
	t.Helper()
	out, err := Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Write([]byte(text))
	if err := out.Close(err); err != nil {
		t.Fatal(err)
	}
}

// TestAtomicFileFollowsNoLink puts a link at the name of the temporary file, as anybody
// can who may write to the directory.
func TestAtomicFileFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious, name := filepath.Join(dir, "precious"), filepath.Join(dir, "out.csv")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, ".out.csv.partial")); err != nil {
		t.Fatal(err)
	}
	write(t, name, "rows")
	for file, want := range map[string]string{precious: "precious", name: "rows"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s contains %q, error %v; want %q", file, got, err, want)
		}
	}
}

// TestAtomicFileErrors fails each step: the error names the file of the caller, and its
// old contents stay.
func TestAtomicFileErrors(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.csv")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "partial") {
			t.Errorf("%s: error %v", what, err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != "before" {
			t.Errorf("%s: the file contains %q, error %v", what, got, err)
		}
	}
	_, err := Create(t.Context(), filepath.Join(dir, "missing", "out.csv"))
	check("no directory", err)
	out, err := Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	check("failed work", out.Close(errors.New("work failed")))
	if out, err = Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := out.file.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Write([]byte("rows"))
	check("write", err)
	check("close", out.Close(nil))
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the directory contains %v, error %v", names, err)
	}
}

// TestAtomicFileSyncs records the steps of Close, once without and once with each of them
// failing: the file is durable before the rename, and the rename before Close returns.
func TestAtomicFileSyncs(t *testing.T) {
	failure := errors.New("no luck")
	for _, c := range []struct {
		failing string
		want    []string
		content string
	}{
		{"", []string{"sync", "rename", "sync directory"}, "rows"},
		{"sync", []string{"sync"}, "before"},
		{"rename", []string{"sync", "rename"}, "before"},
		{"sync directory", []string{"sync", "rename", "sync directory"}, "rows"},
	} {
		t.Run("failing="+c.failing, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "out.csv")
			if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := Create(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			var steps []string
			step := func(what string, do func() error) error {
				steps = append(steps, what)
				if what == c.failing {
					return failure
				}
				return do()
			}
			out.steps = commitSteps{
				sync: func(f *os.File) error { return step("sync", func() error { return systemSteps.sync(f) }) },
				rename: func(from, to string) error {
					return step("rename", func() error { return systemSteps.rename(from, to) })
				},
				syncDir: func(of string) error {
					if of != dir {
						t.Errorf("syncs directory %s, want %s", of, dir)
					}
					return step("sync directory", func() error { return systemSteps.syncDir(of) })
				},
			}
			_, err = out.Write([]byte("rows"))
			err = out.Close(err)
			if (c.failing == "") != (err == nil) || err != nil && !errors.Is(err, failure) {
				t.Errorf("Close returns %v", err)
			}
			if !slices.Equal(steps, c.want) {
				t.Errorf("steps %q, want %q", steps, c.want)
			}
			if got, err := os.ReadFile(name); err != nil || string(got) != c.content {
				t.Errorf("the file contains %q, error %v; want %q", got, err, c.content)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
				t.Errorf("the directory contains %v, error %v", names, err)
			}
		})
	}
}

// TestAtomicFileOfTwoWriters begins to write a file while another writer writes it: the first one
// fails, and must not publish what the second one has written so far, nor remove it.
func TestAtomicFileOfTwoWriters(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.csv")
	for _, cause := range []error{nil, errors.New("no more rows")} {
		if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := Create(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Create(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = second.Write([]byte("half"))
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Close(cause); err == nil || cause != nil && !errors.Is(err, cause) {
			t.Errorf("Close of the first: %v", err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != "before" {
			t.Errorf("after the first the file contains %q, error %v", got, err)
		}
		if _, err := second.Write([]byte(" and half")); err != nil {
			t.Fatal(err)
		}
		if err := second.Close(nil); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != "half and half" {
			t.Errorf("after the second the file contains %q, error %v", got, err)
		}
	}
}

// TestAtomicFileThroughLink writes by a link: its target is replaced, and the link stays.
func TestAtomicFileThroughLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.csv"), filepath.Join(dir, "link.csv")
	if err := errors.Join(os.WriteFile(target, []byte("before"), 0o600), os.Symlink("target.csv", link)); err != nil {
		t.Fatal(err)
	}
	write(t, link, "rows")
	if got, err := os.ReadFile(target); err != nil || string(got) != "rows" {
		t.Errorf("the target contains %q, error %v; want %q", got, err, "rows")
	}
	if to, err := os.Readlink(link); err != nil || to != "target.csv" {
		t.Errorf("the link is to %q, error %v", to, err)
	}
}

// TestAtomicFileKeepsMode replaces a file that only its owner can read.
func TestAtomicFileKeepsMode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.csv")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	during, statErr := os.Stat(out.file.Name())
	if err := errors.Join(statErr, out.Close(nil)); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(name)
	if err != nil || during.Mode().Perm() != 0o600 || after.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v and then %v, error %v", during.Mode(), after.Mode(), err)
	}
}

// TestAtomicFileOfOutput writes twice to a link to standard output, which a shell has opened to
// append: what was there stays.
func TestAtomicFileOfOutput(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "all.csv"), filepath.Join(dir, "stdout")
	if err := os.WriteFile(name, []byte("before "), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	for range 2 {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout = f
		write(t, link, "rows ")
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "before rows rows " {
		t.Errorf("the file contains %q, error %v", got, err)
	}
}

// TestAtomicFileOfLongName writes files with the longest names that the system allows.
func TestAtomicFileOfLongName(t *testing.T) {
	for _, base := range []string{strings.Repeat("x", 251) + ".csv", strings.Repeat("表", 83) + "xy.csv"} {
		name := filepath.Join(t.TempDir(), base)
		write(t, name, "rows")
		if got, err := os.ReadFile(name); err != nil || string(got) != "rows" {
			t.Errorf("the file contains %q, error %v", got, err)
		}
	}
}
