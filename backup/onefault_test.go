package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// failingCall is a target of which the call n fails before it has an effect. With method, calls of other methods do not count.
type failingCall struct {
	*backuptest.Target
	method   string
	calls, n int
}

// open opens the backup directory. The calls count from then on.
func (f *failingCall) open(t *testing.T) *backup.Repository {
	t.Helper()
	n := f.n
	f.n = 0
	r, err := backup.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	f.calls, f.n = 0, n
	return r
}

func (f *failingCall) fails(method string) error {
	if f.method != "" && f.method != method {
		return nil
	}
	if f.calls++; f.calls == f.n {
		return errCall
	}
	return nil
}

var errCall = errors.New("injected failure of a call")

func (f *failingCall) Put(ctx context.Context, name string, r io.Reader) error {
	if err := f.fails("Put"); err != nil {
		return err
	}
	return f.Target.Put(ctx, name, r)
}

func (f *failingCall) PutIfAbsent(ctx context.Context, name string, r io.Reader) error {
	if err := f.fails("PutIfAbsent"); err != nil {
		return err
	}
	return f.Target.PutIfAbsent(ctx, name, r)
}

func (f *failingCall) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := f.fails("Get"); err != nil {
		return nil, err
	}
	return f.Target.Get(ctx, name)
}

func (f *failingCall) List(ctx context.Context, prefix string) ([]backup.Object, error) {
	if err := f.fails("List"); err != nil {
		return nil, err
	}
	return f.Target.List(ctx, prefix)
}

func (f *failingCall) Delete(ctx context.Context, name string) error {
	if err := f.fails("Delete"); err != nil {
		return err
	}
	return f.Target.Delete(ctx, name)
}

// TestPruneAfterOneFault fails each call of the target in a Prune. Prune must fail, and each backup that is left must be whole.
func TestPruneAfterOneFault(t *testing.T) {
	for n, ended := 1, false; !ended; n++ {
		e := newEnv(t)
		r := e.open()
		for i := range 3 {
			e.fill(fmt.Sprint("p", i), 1)
			e.ok(e.db.Compact(t.Context())) // no two backups share a file
			e.mustCreate(r)
		}
		chunk := account + "/archive/00000007/" + strings.Repeat("0", 32) + "/00000000000000001-00000000000000002.log"
		e.ok(e.target.Put(t.Context(), chunk, strings.NewReader("of a database without a backup")))
		target := &failingCall{Target: e.target, n: n}
		_, err := target.open(t).Prune(t.Context(), account, 1)
		if ended = target.calls < n; ended && (err != nil || n < 8) || !ended && !errors.Is(err, errCall) {
			t.Errorf("call %d fails: %t; Prune: %v", n, !ended, err)
		}
		report, err := e.open().Verify(t.Context(), account, nil)
		if err != nil || slices.ContainsFunc(report.Findings, func(f backup.Finding) bool { return f.Object != chunk }) {
			t.Errorf("after a fault of call %d: Verify: %+v, %v", n, report, err)
		}
	}
}

// TestCreateAfterOneFault fails each call of the target, and each operation on the files of the checkpoint, in a Create. Create must
// fail, or its backup must have every row.
func TestCreateAfterOneFault(t *testing.T) {
	for _, side := range []string{"target", "files"} {
		e := newEnv(t)
		e.open()
		failures := 0
		for n, ended := 1, false; !ended; n++ {
			e.fill(fmt.Sprint("p", n), 1)
			_, err := e.db.Apply(t.Context(), "Table", store.Insert(edm.Entity{Key: edm.Key{Partition: "log", Row: fmt.Sprint(n)}}))
			e.ok(err)
			target := &failingCall{Target: e.target}
			r := target.open(t)
			calls, disk := 0, vfs.FS(e.disk)
			if side == "target" {
				target.n = n
			} else {
				disk = errorfs.Wrap(e.disk, func(op vfs.Op) *errorfs.Fault {
					if strings.HasPrefix(op.Name, "data/.backup") {
						if calls++; calls == n {
							return &errorfs.Fault{Err: errCall}
						}
					}
					return nil
				})
			}
			e.now = e.now.Add(time.Hour)
			info, err := r.Create(t.Context(), backup.Source{
				Account: account, DB: e.db, FS: disk, Scratch: "data/.backup", Clock: func() time.Time { return e.now },
			}, nil)
			if ended = max(calls, target.calls) < n; ended && err != nil {
				t.Fatalf("%s: Create without a fault: %v", side, err)
			}
			if err != nil {
				failures++
				if !errors.Is(err, errCall) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
					t.Errorf("%s, call %d fails: Create: %v, want %v alone", side, n, err, errCall)
				}
				continue
			}
			dir := fmt.Sprint("restored-", side, n)
			if _, err := e.open().Restore(t.Context(), e.disk, dir, backup.RestoreOptions{ID: info.ID}); err != nil {
				t.Errorf("%s, call %d fails: Create succeeds, and Restore: %v", side, n, err)
				continue
			}
			db, err := engine.Open(dir+"/"+account, engine.Options{FS: e.disk, ReadOnly: true})
			e.ok(err)
			if got, want := dump(t, db), dump(t, e.db); !slices.Equal(got, want) {
				t.Errorf("%s, call %d fails: Create succeeds with %d lines, want %d", side, n, len(got), len(want))
			}
			e.ok(db.Close())
		}
		if failures < 4 {
			t.Errorf("%s: Create failed %d times", side, failures)
		}
	}
}

// TestRestoreAfterOneFault fails each call of the target, and each operation on files, in a Restore of a backup and of a moment, and in
// one that finds a file that is not durable. Restore must fail, leave no directory, and succeed when it is called again. If it succeeds,
// a power cut loses nothing of the database.
func TestRestoreAfterOneFault(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	b := a.put("b")
	a.put("c")
	a.ok(a.db.Close())
	rows := func(fsys vfs.FS) string {
		db, err := engine.Open("restored/"+account, engine.Options{FS: fsys, ReadOnly: true})
		if err != nil {
			return err.Error()
		}
		defer db.Close()
		return strings.Join(dump(t, db), "; ")
	}
	for _, c := range []struct {
		side  string
		until time.Time
		again bool
	}{
		{side: "target"}, {side: "files"}, {side: "target", until: b}, {side: "files", until: b}, {side: "files", again: true},
	} {
		o := backup.RestoreOptions{Until: c.until}
		whole := vfs.NewMem()
		_, err := a.r.Restore(t.Context(), whole, "restored", o)
		a.ok(err)
		want, failures, stride := rows(whole), 0, 1
		if c.side == "files" && testing.Short() {
			stride = 5
		}
		for n, ended := 1, false; !ended; n += stride {
			target := &failingCall{Target: a.target}
			r := target.open(t)
			disk, calls := vfs.NewCrashMem(), 0
			fsys := errorfs.Wrap(disk, nil)
			if c.again {
				unsynced := func(op vfs.Op) bool { return op.Kind == "sync" && strings.HasSuffix(op.Name, ".sst") }
				fsys.SetRule(errorfs.FailNth(1, unsynced, errorfs.Fault{Err: errCall}, false))
				if _, err := a.r.Restore(t.Context(), fsys, "restored", o); !errors.Is(err, errCall) {
					t.Fatalf("a sync failed, and Restore: %v", err)
				}
			}
			if c.side == "target" {
				target.n = n
			} else {
				fsys.SetRule(func(vfs.Op) *errorfs.Fault {
					if calls++; calls == n {
						return &errorfs.Fault{Err: errCall}
					}
					return nil
				})
			}
			_, err = r.Restore(t.Context(), fsys, "restored", o)
			if ended = max(calls, target.calls) < n; ended && err != nil {
				t.Fatalf("%s, until %v: Restore without a fault: %v", c.side, c.until, err)
			}
			if err != nil {
				failures++
				if _, statErr := disk.Stat("restored"); !errors.Is(err, errCall) || !errors.Is(statErr, fs.ErrNotExist) {
					t.Errorf("%s, until %v, call %d fails: Restore: %v; Stat: %v", c.side, c.until, n, err, statErr)
				}
				_, err = a.r.Restore(t.Context(), disk, "restored", o)
				a.ok(err)
			}
			if got := rows(disk.Crash(vfs.CrashOptions{Mode: "min"})); got != want {
				t.Errorf("%s, until %v, call %d fails: after a power cut %q, want %q", c.side, c.until, n, got, want)
			}
		}
		if failures < 5 {
			t.Errorf("%s, until %v: Restore failed %d times", c.side, c.until, failures)
		}
	}
}

// TestReadsAfterOneFault fails each call of the target in functions that read backups and the archive. Each must return the error: what
// it could not read may be damaged, or later than what it found. Fork may also find that the database is older all the same.
func TestReadsAfterOneFault(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 1)
	e.mustCreate(r)
	e.ok(e.db.Checkpoint(t.Context(), "older/"+account))
	e.fill("b", 1)
	e.mustCreate(r)
	e.ok(e.target.Put(t.Context(), account+"/archive/00000001/"+strings.Repeat("0", 32)+"/other", strings.NewReader("of another program")))
	for _, c := range []struct {
		name  string
		calls int
		read  func(r *backup.Repository) error
	}{
		{"Verify", 5, func(r *backup.Repository) error { _, err := r.Verify(t.Context(), "", nil); return err }},
		{"List", 3, func(r *backup.Repository) error { _, err := r.List(t.Context(), account); return err }},
		{"Accounts", 1, func(r *backup.Repository) error { _, err := r.Accounts(t.Context()); return err }},
		{"Check", 1, func(r *backup.Repository) error { return r.Check(t.Context()) }},
		{"Reaches", 4, func(r *backup.Repository) error {
			_, err := r.Reaches(t.Context(), account, e.disk, "older/"+account)
			return err
		}},
	} {
		for n, ended := 1, false; !ended; n++ {
			target := &failingCall{Target: e.target, n: n}
			err := c.read(target.open(t))
			if ended = target.calls < n; ended && (err != nil || n <= c.calls) || !ended && !errors.Is(err, errCall) {
				t.Errorf("%s, call %d fails: %t, error %v", c.name, n, !ended, err)
			}
		}
	}
	for n, ended := 1, false; !ended; n++ {
		target := &failingCall{Target: e.target, n: n}
		forked, err := target.open(t).Fork(t.Context(), account, e.disk.Clone(), "older/"+account)
		if ended = target.calls < n; ended && n <= 8 || forked != (err == nil) || err != nil && !errors.Is(err, errCall) {
			t.Errorf("Fork, call %d fails: %t, forked %t, error %v", n, !ended, forked, err)
		}
	}
}
