//go:build linux || darwin

package engine_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

// TestIrregularFiles replaces files of the database, and files that it would create, by
// links, pipes, sockets and directories. Open must not block or follow a link. It must
// return damage, or ignore the file and work.
func TestIrregularFiles(t *testing.T) {
	race.SkipOneGoroutine(t)
	outside := filepath.Join(t.TempDir(), "outside")
	check(t, "WriteFile", os.WriteFile(outside, []byte("somebody's"), 0o600))
	kinds := map[string]func(name string) error{
		"link":          func(name string) error { return os.Symlink(outside, name) },
		"dangling link": func(name string) error { return os.Symlink("nowhere", name) },
		"pipe":          func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"directory":     func(name string) error { return os.MkdirAll(filepath.Join(name, "full"), 0o700) },
		"socket":        makeSocket,
	}
	const opens, corrupt, refuses = "opens", "damage", "refuses"
	for _, c := range []struct {
		name string
		want string
	}{
		{"000000.wal", opens},
		{"000001.wal", opens}, // stale
		{"000002.wal", opens},
		{"LAST.wal", corrupt}, // the newest segment
		{"NEXT.wal", corrupt},
		{"900000000000000000.wal", opens}, // the number is too large to be ours
		{"LAST.sst", corrupt},
		{"NEXT.sst", opens},
		{"MANIFEST", refuses},
		{"MANIFEST.tmp", opens}, // a directory is refused at once
		{"LOCK", refuses},
	} {
		for kind, make := range kinds {
			t.Run(c.name+" is a "+kind, func(t *testing.T) {
				dir := t.TempDir()
				o := manual(nil)
				o.FS = nil
				db := mustOpen(t, dir, o)
				check(t, "CreateTable", db.CreateTable(t.Context(), table))
				check(t, "Flush", db.Flush(t.Context()))
				apply(t, db, store.Insert(entity("p", "r", 1, 10)))
				check(t, "Close", closeAtOnce(db))
				name := filepath.Join(dir, actual(t, dir, c.name))
				check(t, "RemoveAll", os.RemoveAll(name))
				check(t, kind, make(name))
				want := c.want
				if c.name == "MANIFEST.tmp" && kind == "directory" {
					want = refuses
				}
				for _, readOnly := range []bool{true, false} {
					o.ReadOnly = readOnly
					db, err := engine.Open(dir, o)
					switch {
					case readOnly && want == refuses && c.name != "MANIFEST" || want == opens && err == nil:
					case want == corrupt && errors.Is(err, store.ErrCorrupt), want == refuses && err != nil:
						t.Log(err)
					default:
						t.Errorf("for reading %v: Open: %v, want that it %s", readOnly, err, want)
					}
					if err != nil {
						continue
					}
					if !readOnly {
						apply(t, db, store.Insert(entity("p", "s", 1, 10)))
						check(t, "Flush", db.Flush(t.Context()))
						apply(t, db, store.Insert(entity("p", "t", 1, 10)))
						check(t, "Compact", db.Compact(t.Context()))
					}
					if r, err := db.Verify(t.Context()); err != nil || len(r.Findings) > 0 {
						t.Errorf("Verify: %+v, %v", r, err)
					}
					check(t, "Close", closeAtOnce(db))
				}
				if got, err := os.ReadFile(outside); err != nil || string(got) != "somebody's" {
					t.Errorf("outside: %q, %v", got, err)
				}
			})
		}
	}
}

// makeSocket creates a socket of any name. A name that can be bound is shorter than
// those in some temporary directories.
func makeSocket(name string) error {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	short := filepath.Join(dir, "s")
	l, err := net.Listen("unix", short)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return errors.Join(l.Close(), os.Rename(short, name))
}

// actual returns the name of the newest file of a kind, or of the next one.
func actual(t *testing.T, dir, name string) string {
	t.Helper()
	ext := filepath.Ext(name)
	names, err := filepath.Glob(filepath.Join(dir, "*"+ext))
	check(t, "Glob", err)
	all, err := filepath.Glob(filepath.Join(dir, "*.???"))
	check(t, "Glob", err)
	most := uint64(0)
	for _, n := range all {
		_, number := filename.Parse(filepath.Base(n))
		most = max(most, number)
	}
	switch name {
	case "LAST" + ext:
		return filepath.Base(names[len(names)-1])
	case "NEXT" + ext:
		return filename.Make(filename.Kind(ext), most+1)
	}
	return name
}
