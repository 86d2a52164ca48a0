//go:build linux || darwin

package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/datadir"
)

// TestAccounts lists the accounts of a directory whose name has characters of a pattern. Those whose
// database cannot be read are among them, and files and directories of other programs are not.
func TestAccounts(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data[1]*")
	if got, err := datadir.Accounts(data); len(got) > 0 || err != nil {
		t.Errorf("no directory: %q, %v", got, err)
	}
	for _, name := range []string{"whole/MANIFEST", "lost/000001.sst", "docs/readme", ".backup-whole/MANIFEST", "Other/MANIFEST"} {
		file := filepath.Join(data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(data, "notes"), nil, 0o600),
		os.Symlink("not-mounted", filepath.Join(data, "away")),
		os.Mkdir(filepath.Join(data, "unread"), 0o700),
		os.Symlink("MANIFEST", filepath.Join(data, "unread", "MANIFEST")), // an error of each Stat
	); err != nil {
		t.Fatal(err)
	}
	want := []string{"Other", "away", "lost", "unread", "whole"}
	if got, err := datadir.Accounts(data); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if got, err := datadir.Accounts(filepath.Join(data, "notes")); err == nil {
		t.Errorf("a file has the accounts %q", got)
	}
}
