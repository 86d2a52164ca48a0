package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// full is standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestBackupVerifyUnseen verifies a damaged backup when the list of damage cannot be written.
func TestBackupVerifyUnseen(t *testing.T) {
	dir := t.TempDir()
	data, dest := filepath.Join(dir, "data"), filepath.Join(dir, "backup")
	for _, args := range [][]string{{"table", "create", "Tab"}, {"backup", "create", dest}} {
		if code := run(t.Context(), append(args, "--data", data, "-q"), nil, io.Discard, os.Stderr); code != exitOK {
			t.Fatalf("%s exits with %d", args, code)
		}
	}
	objects, err := filepath.Glob(filepath.Join(dest, "*", "files", "*"))
	if err != nil || len(objects) == 0 {
		t.Fatalf("the objects are %v with error %v", objects, err)
	}
	if err := os.Remove(objects[0]); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	code := run(t.Context(), []string{"backup", "verify", dest}, nil, full{}, &stderr)
	if code != exitFailure || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit code %d and %q, want %d and the error of the output", code, stderr.String(), exitFailure)
	}
}

// TestBackupVerifyNewer verifies backups of two accounts, of which a newer build made the first one's.
// The command names that one, and checks the other.
func TestBackupVerifyNewer(t *testing.T) {
	dir := t.TempDir()
	data, dest := filepath.Join(dir, "data"), filepath.Join(dir, "backup")
	for _, account := range []string{"newer", "other"} {
		for _, args := range [][]string{{"table", "create", "Tab"}, {"backup", "create", dest}} {
			if code := run(t.Context(), append(args, "--data", data, "--account", account, "-q"), nil, io.Discard, os.Stderr); code != exitOK {
				t.Fatalf("%s exits with %d", args, code)
			}
		}
	}
	names, err := filepath.Glob(filepath.Join(dest, "newer", "backups", "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("the manifests are %v with error %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	_, body, _ := strings.Cut(string(text), "\n")
	text = fmt.Appendf(nil, "tablerock-backup 2 %016x\n%s", xxhash.Sum64String("2\n"+body), body)
	if err = errors.Join(err, os.Remove(names[0]), os.WriteFile(names[0], text, 0o600)); err != nil {
		t.Fatal(err)
	}
	verify := func(want int) (stdout, stderr string) {
		var out, messages strings.Builder
		if code := run(t.Context(), []string{"backup", "verify", dest}, nil, &out, &messages); code != want {
			t.Errorf("exit code %d, want %d", code, want)
		}
		return out.String(), messages.String()
	}
	stdout, stderr := verify(exitUnusable)
	if !strings.Contains(stdout, filepath.Base(names[0])) || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "not checked: a newer version") {
		t.Errorf("printed %s", stdout)
	}
	if !strings.Contains(stderr, "not checked: 1 of ") || !strings.Contains(stderr, "use a newer tablerock") {
		t.Errorf("the error is %s", stderr)
	}
	if err := os.RemoveAll(filepath.Join(dest, "other", "files")); err != nil {
		t.Fatal(err)
	}
	if stdout, _ = verify(exitCorrupt); !strings.Contains(stdout, "not checked: a newer version") || !strings.Contains(stdout, "it is missing") {
		t.Errorf("printed %s", stdout)
	}
}

// TestRestoreBelowFile restores to a place that cannot exist. No unfinished restore is there.
func TestRestoreBelowFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	code := run(t.Context(), []string{"restore", filepath.Join(file, "backups"), filepath.Join(file, "restored")}, nil, io.Discard, &stderr)
	if code == exitOK || strings.Contains(stderr.String(), "unfinished") {
		t.Errorf("exit code %d and %q", code, &stderr)
	}
}

// TestBackupOfLostAccount backs up all accounts, of which one has lost its manifest: the command makes
// the backup of the other one, and fails.
func TestBackupOfLostAccount(t *testing.T) {
	dir := t.TempDir()
	data, dest := filepath.Join(dir, "data"), filepath.Join(dir, "backup")
	for _, account := range []string{"lost", "whole"} {
		if code := run(t.Context(), []string{"table", "create", "Tab", "--data", data, "--account", account, "-q"}, nil, io.Discard, os.Stderr); code != exitOK {
			t.Fatalf("exit code %d", code)
		}
	}
	if err := os.Remove(filepath.Join(data, "lost", "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	code := run(t.Context(), []string{"backup", "create", dest, "--data", data}, nil, io.Discard, &stderr)
	if text := stderr.String(); code != exitCorrupt || !strings.Contains(text, "of account whole") || !strings.Contains(text, "MANIFEST") {
		t.Errorf("exit code %d and %q", code, text)
	}
}
