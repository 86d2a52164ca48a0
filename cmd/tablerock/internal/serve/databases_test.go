package serve

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestReserveOfMissingDirectory asks for the reserve of all accounts on a small volume before the data directory exists, as the
// first account does. It must be that of the volume, as for the accounts after it.
func TestReserveOfMissingDirectory(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetCapacity(64 << 20)
	missing := errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "space" && strings.Contains(op.Name, "data") {
			return &errorfs.Fault{Err: fs.ErrNotExist}
		}
		return nil
	})
	for _, dir := range []string{".", "data", "sub/data/deep", "/volume/data"} {
		if got := reserve(missing, dir); got != 4<<20 {
			t.Errorf("%s: %d bytes, want %d", dir, got, 4<<20)
		}
	}
	if got := reserve(vfs.NewMem(), "data"); got != maxReserve {
		t.Errorf("without a limit: %d bytes, want %d", got, int64(maxReserve))
	}
}

// TestForkFails opens a database that cannot be compared with its backups. It is not opened: if it is
// an older copy, its writes would be archived in the history of the newer one.
func TestForkFails(t *testing.T) {
	c := &Config{Data: t.TempDir(), Compression: compressFast, Quiet: true}
	s, failure := c.newDatabaseSet(slog.New(slog.DiscardHandler)), errors.New("input/output error")
	s.archive = func(string) engine.Archive { return nil }
	s.fork = func(context.Context, string, string) (bool, error) { return false, failure }
	_, err := s.of(t.Context(), []account{{name: "three"}})
	if !errors.Is(err, failure) || !strings.Contains(err.Error(), "three") {
		t.Errorf("the database is opened with %v, want an error with its account and %v", err, failure)
	}
	if len(s.open) > 0 {
		t.Errorf("the database is open")
		_ = s.close()
	}
}

// TestLeftoversOfBackup opens the database of an account whose last backup was killed: the links
// to its files are removed.
func TestLeftoversOfBackup(t *testing.T) {
	c := &Config{Data: t.TempDir(), Compression: compressFast, Quiet: true}
	left := filepath.Join(c.Data, ".backup-three")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "000001.sst"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s := c.newDatabaseSet(slog.New(slog.DiscardHandler))
	if _, err := s.of(t.Context(), []account{{name: "three"}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of what the backup left: %v, want that it is removed", err)
	}
}
