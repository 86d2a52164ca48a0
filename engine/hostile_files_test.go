//go:build linux || darwin

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestForeignFiles replaces files of a database on the real disk by links, pipes,
// directories and devices. Nothing outside the directory may change, no call may block
// or take much memory, and the data must be there or an error say why not.
func TestForeignFiles(t *testing.T) {
	race.SkipOneGoroutine(t)
	kinds := []struct {
		name string
		make func(name, outside string) error
	}{
		{"link", func(name, outside string) error { return os.Symlink(outside, name) }},
		{"dangling", func(name, outside string) error { return os.Symlink(outside+".missing", name) }},
		{"hard link", func(name, outside string) error { return os.Link(outside, name) }},
		{"fifo", func(name, _ string) error { return unix.Mkfifo(name, 0o600) }},
		{"directory", func(name, _ string) error { return os.MkdirAll(filepath.Join(name, "within"), 0o700) }},
		{"device", func(name, _ string) error { return os.Symlink("/dev/zero", name) }},
		{"sparse", func(name, _ string) error {
			f, err := os.Create(name)
			if err == nil {
				err = errors.Join(f.Truncate(4<<30), f.Close())
			}
			return err
		}},
	}
	for _, kind := range kinds {
		for _, name := range []string{"LOCK", "MANIFEST", "MANIFEST.tmp", "listed.sst", "listed.wal", "000777.wal", "000777.sst"} {
			t.Run(fmt.Sprintf("kind=%s/name=%s", kind.name, name), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "db")
				outside := filepath.Join(filepath.Dir(dir), "outside")
				const precious = "what somebody needs"
				check(t, "WriteFile", os.WriteFile(outside, []byte(precious), 0o600))
				o := small(vfs.OS())
				o.Testing.Manual = true
				db := mustOpen(t, dir, o)
				check(t, "CreateTable", db.CreateTable(t.Context(), table))
				apply(t, db, store.Insert(entity("p", "1", 1, 10)))
				check(t, "Flush", db.Flush(t.Context()))
				apply(t, db, store.Insert(entity("p", "2", 2, 10)))
				check(t, "Close", closeAtOnce(db))

				path := filepath.Join(dir, name)
				if ext := filepath.Ext(name); name == "listed"+ext {
					names := files(t, vfs.OS(), dir, ext)
					path = filepath.Join(dir, names[len(names)-1])
				}
				if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				check(t, kind.name, kind.make(path, outside))
				tryForeign(t, dir, o)
				if got, err := os.ReadFile(outside); err != nil || string(got) != precious {
					t.Errorf("the file outside is %q, %v", got, err)
				}
				if _, err := os.Lstat(outside + ".missing"); err == nil {
					t.Error("a file outside was created")
				}
				if _, err := os.Lstat(path); err != nil && name != "MANIFEST.tmp" {
					t.Errorf("the foreign file was removed: %v", err)
				}
			})
		}
	}
}

// tryForeign opens the database, reads and writes. Calls may fail, but must not return
// wrong data.
func tryForeign(t *testing.T, dir string, o engine.Options) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	defer func() {
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%d bytes allocated", n)
		}
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("it took %v", d)
		}
	}()
	ro := o
	ro.ReadOnly = true
	if view, err := engine.Open(dir, ro); err == nil {
		check(t, "Close of a view", view.Close())
	}
	db, err := engine.Open(dir, o)
	if err != nil {
		return
	}
	defer db.Close()
	if n := len(dump(t, db, store.Query{})); n != 2 {
		t.Errorf("%d entities, want 2", n)
	}
	if _, err := db.Verify(t.Context()); err != nil {
		t.Errorf("Verify: %v", err)
	}
	_, err = db.Apply(t.Context(), table, store.Insert(entity("p", "3", 3, 10)))
	_ = errors.Join(err, db.Flush(t.Context()), db.Compact(t.Context()))
}
