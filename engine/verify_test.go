package engine_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// once returns a rule that runs act right before the first operation that match
// accepts after it is armed.
func once(armed *atomic.Bool, match func(vfs.Op) bool, act func()) errorfs.Rule {
	return func(op vfs.Op) *errorfs.Fault {
		if match(op) && armed.CompareAndSwap(true, false) {
			act()
		}
		return nil
	}
}

func opens(suffix string) func(vfs.Op) bool {
	return func(op vfs.Op) bool { return op.Kind == "open" && strings.HasSuffix(op.Name, suffix) }
}

// TestVerifyBesideFlush flushes before Verify reads the segments. A file that is
// missing by then, or that the next segment has taken over, is not damage.
func TestVerifyBesideFlush(t *testing.T) {
	for _, c := range []struct {
		name string
		at   string
		o    engine.Options
	}{
		{"removed", "MANIFEST", manual(vfs.NewMem())},
		{"taken over", ".wal", manual(vfs.OS())},
	} {
		t.Run(c.name, func(t *testing.T) {
			var db *engine.DB
			var armed atomic.Bool
			c.o.FS = errorfs.Wrap(c.o.FS, once(&armed, opens(c.at), func() {
				check(t, "Flush", db.Flush(t.Context()))
				fill(t, db, "q", 60, 1000)
			}))
			db = mustOpen(t, path.Join(t.TempDir(), "db"), c.o)
			check(t, "CreateTable", db.CreateTable(t.Context(), table))
			fill(t, db, "p", 50, 1000)
			armed.Store(true)
			r, err := db.Verify(t.Context())
			if err != nil || len(r.Findings) > 0 {
				t.Errorf("Verify: %+v, %v", r, err)
			}
		})
	}
}

// TestVerifyBesideClose closes the database while Verify reads it.
func TestVerifyBesideClose(t *testing.T) {
	var db *engine.DB
	var armed atomic.Bool
	fsys := errorfs.Wrap(vfs.NewMem(), once(&armed, opens("MANIFEST"), func() {
		check(t, "Close", closeAtOnce(db))
	}))
	db = mustCreate(t, manual(fsys))
	fill(t, db, "p", 10, 100)
	check(t, "Flush", db.Flush(t.Context()))
	armed.Store(true)
	if r, err := db.Verify(t.Context()); err != nil && !errors.Is(err, store.ErrClosed) || len(r.Findings) > 0 {
		t.Errorf("Verify: %+v, %v", r, err)
	}
	if _, err := db.Verify(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Verify after Close: %v, want %v", err, store.ErrClosed)
	}
}

// TestVerifyFindsDamage damages bytes of each kind of file while the database is
// open.
func TestVerifyFindsDamage(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 10, 100)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "q", 10, 100)
	names := append(files(t, disk, "db", ".sst"), files(t, disk, "db", ".wal")...)
	names = append(names, "MANIFEST")
	if len(names) != 3 {
		t.Fatalf("files are %v, want one of each kind", names)
	}
	if r, err := db.Verify(t.Context()); err != nil || len(r.Findings) > 0 || r.Files != 3 || r.Entities != 20 {
		t.Fatalf("Verify without damage: %+v, %v", r, err)
	}
	for _, name := range names {
		b := readFile(t, disk, "db/"+name)
		for _, off := range []int64{0, 100} {
			check(t, "Patch", disk.Patch("db/"+name, off, []byte{b[off] ^ 1}))
			r, err := db.Verify(t.Context())
			if err != nil || !slices.ContainsFunc(r.Findings, func(f engine.Finding) bool { return f.File == name }) {
				t.Errorf("Verify with damage at %d of %s: %+v, %v", off, name, r, err)
			}
			check(t, "Patch", disk.Patch("db/"+name, off, b[off:off+1]))
		}
	}
	if r, err := db.Verify(t.Context()); err != nil || len(r.Findings) > 0 {
		t.Errorf("Verify after the damage is undone: %+v, %v", r, err)
	}
}

// TestVerifyFindsMissingFile removes an sstable and the log and damages another sstable while the database is open. All three are findings.
func TestVerifyFindsMissingFile(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	for _, partition := range []string{"p", "q"} {
		fill(t, db, partition, 10, 100)
		check(t, "Flush", db.Flush(t.Context()))
	}
	names := files(t, disk, "db", ".sst")
	if len(names) != 2 {
		t.Fatalf("files are %v, want two", names)
	}
	b := readFile(t, disk, "db/"+names[0])
	check(t, "Patch", disk.Patch("db/"+names[0], 100, []byte{b[100] ^ 1}))
	fill(t, db, "r", 10, 100)
	names = append(names, files(t, disk, "db", ".wal")...)
	for _, name := range names[1:] {
		check(t, "Remove", disk.Remove("db/"+name))
	}
	r, err := db.Verify(t.Context())
	for _, name := range names {
		if err != nil || !slices.ContainsFunc(r.Findings, func(f engine.Finding) bool { return f.File == name }) {
			t.Errorf("Verify without %v, and with damage of %s: %+v, %v; want a finding of %s", names[1:], names[0], r, err, name)
		}
	}
}

// TestVerifyBesideFlushAndClose flushes and closes the database while Verify opens the
// log. That the file is missing is not damage.
func TestVerifyBesideFlushAndClose(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, engine.Options{FS: fsys})
	fill(t, db, "p", 10, 100)
	var armed atomic.Bool
	armed.Store(true)
	opens := func(op vfs.Op) bool { return op.Kind == "open" && strings.HasSuffix(op.Name, ".wal") }
	fsys.SetRule(once(&armed, opens, func() {
		check(t, "Flush", db.Flush(t.Context()))
		check(t, "Close", closeAtOnce(db))
	}))
	if r, err := db.Verify(t.Context()); !errors.Is(err, store.ErrClosed) || len(r.Findings) > 0 || armed.Load() {
		t.Errorf("Verify = %+v, %v; want no findings, and %v", r, err, store.ErrClosed)
	}
}

// TestVerifyWithProgress reads several sstables and the log: the bytes read rise to all.
func TestVerifyWithProgress(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	for _, partition := range []string{"p", "q", "r"} {
		fill(t, db, partition, 50, 1000)
		check(t, "Flush", db.Flush(t.Context()))
	}
	fill(t, db, "s", 10, 100)
	var calls []int64
	var all int64
	r, err := db.VerifyWithProgress(t.Context(), func(done, total int64) {
		calls, all = append(calls, done), total
	})
	if err != nil || len(r.Findings) > 0 {
		t.Fatalf("VerifyWithProgress: %+v, %v", r, err)
	}
	if len(calls) < 3 || !slices.IsSorted(calls) || calls[len(calls)-1] != all || r.Bytes != all {
		t.Errorf("progress is %d of %d, want it to rise to %d, the bytes of the report", calls, all, r.Bytes)
	}
}

// TestVerifyCancelled damages each sstable and ends Verify after the first one: its damage is in
// the report.
func TestVerifyCancelled(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	for _, partition := range []string{"p", "q", "r"} {
		fill(t, db, partition, 50, 1000)
		check(t, "Flush", db.Flush(t.Context()))
	}
	for _, name := range files(t, disk, "db", ".sst") {
		check(t, "Patch", disk.Patch("db/"+name, 100, []byte{readFile(t, disk, "db/"+name)[100] ^ 1}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := db.VerifyWithProgress(ctx, func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) || len(r.Findings) != 2 || r.Findings[0].File != r.Findings[1].File {
		t.Errorf("VerifyWithProgress: %+v, %v; want a wrong sum and a wrong hash of one file, and %v", r, err, context.Canceled)
	}
}

// TestVerifyAfterOneFault fails each operation of Verify once. That is not damage of a file, and a file that cannot be read may be
// the database's: that of a segment kept for reuse, an sstable that waits for its removal, and files that a crash left empty.
func TestVerifyAfterOneFault(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	fill(t, db, "p", 50, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	c := db.Query(t.Context(), table, store.Query{})
	check(t, "Compact", db.Compact(t.Context()))
	defer func() { check(t, "Close", c.Close()) }()
	fill(t, db, "q", 5, 1000)
	for _, name := range []string{"db/000001.wal", "db/000999.sst"} {
		f, err := fsys.Create(name)
		check(t, "Create", err)
		if strings.HasSuffix(name, ".wal") {
			_, err = f.WriteAt(make([]byte, 8<<10), 0)
		}
		check(t, "Close", errors.Join(err, f.Close()))
	}
	for n, failed := uint64(1), true; failed; n++ {
		failed = false
		what := ""
		nth := errorfs.FailNth(n, nil, errorfs.Fault{Err: syscall.EMFILE}, false)
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			f := nth(op)
			if f != nil {
				failed, what = true, op.String()
			}
			return f
		})
		r, err := db.Verify(t.Context())
		if len(r.Findings)+len(r.Unknown) > 0 || err != nil && !errors.Is(err, syscall.EMFILE) {
			t.Errorf("%s failed: findings %v, unknown files %v, error %v", what, r.Findings, r.Unknown, err)
		}
	}
}
