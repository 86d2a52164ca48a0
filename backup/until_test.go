package backup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// archived is a database with backups and an archive in one target.
type archived struct {
	*testing.T
	disk   *vfs.Mem
	target *backuptest.Target
	r      *backup.Repository
	now    time.Time
	dir    string
	db     *engine.DB
}

func newArchived(t *testing.T) *archived {
	a := &archived{T: t, disk: vfs.NewMem(), target: backuptest.NewTarget(1, 0), now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	var err error
	a.r, err = backup.Init(t.Context(), a.target)
	a.ok(err)
	a.open("data")
	a.ok(a.db.CreateTable(t.Context(), "Things"))
	return a
}

func (a *archived) ok(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// Now and AfterFunc implement engine.Clock.
func (a *archived) Now() time.Time { return a.now }

func (a *archived) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}

func (a *archived) open(dir string) {
	o := engine.Options{FS: a.disk, SegmentBytes: 64 << 10, CacheBytes: 1 << 20, Archive: backup.NewArchive(a.target, account)}
	o.Testing.Clock, o.Testing.Manual = a, true
	db, err := engine.Open(dir+"/"+account, o)
	a.ok(err)
	a.db, a.dir = db, dir
}

// put writes a row a second later and archives it. It returns the time of the write.
func (a *archived) put(row string) time.Time {
	a.Helper()
	a.now = a.now.Add(time.Second)
	results, err := a.db.Apply(a.Context(), "Things", store.InsertOrReplace(edm.Entity{Key: edm.Key{Row: row}}))
	a.ok(err)
	a.ok(a.db.Flush(a.Context()))
	for worked := true; worked; {
		worked, err = a.db.Step(a.Context())
		a.ok(err)
	}
	return results[0].Timestamp.Time()
}

func (a *archived) backup() backup.Info {
	a.Helper()
	info, err := a.r.Create(a.Context(), backup.Source{
		Account: account, DB: a.db, FS: a.disk, Scratch: a.dir + ".scratch", Clock: func() time.Time { return a.now },
	}, nil)
	a.ok(err)
	return info
}

// restored restores a moment and returns the rows.
func (a *archived) restored(dir string, until time.Time) string {
	a.Helper()
	infos, err := a.r.Restore(a.Context(), a.disk, dir, backup.RestoreOptions{Until: until})
	a.ok(err)
	db, err := engine.Open(dir+"/"+account, engine.Options{FS: a.disk, ReadOnly: true})
	a.ok(err)
	defer db.Close()
	var rows []string
	for e, err := range store.Entities(db.Query(a.Context(), "Things", store.Query{})) {
		a.ok(err)
		rows = append(rows, e.Key.Row)
		if at := infos[0].LastTimestamp; at.Before(e.Timestamp.Time()) {
			a.Errorf("until %v: LastTimestamp is %v, before that of row %s, %v", until, at, e.Key.Row, e.Timestamp.Time())
		}
	}
	return strings.Join(rows, " ")
}

// TestRestoreUntil restores moments before, between and after two backups, and then moments
// of both histories after the restored database has gone on.
func TestRestoreUntil(t *testing.T) {
	a := newArchived(t)
	t0 := a.put("a")
	a.backup()
	t1 := a.put("b")
	t2 := a.put("c")
	a.backup()
	t3 := a.put("d")
	for i, c := range []struct {
		until time.Time
		want  string
	}{
		{t0, "a"},
		{t1.Add(-100), "a"},
		{t1, "a b"},
		{t2.Add(-100), "a b"},
		{t2, "a b c"},
		{t3.Add(-100), "a b c"},
		{t3, "a b c d"},
	} {
		if got := a.restored(fmt.Sprint("restored", i), c.until); got != c.want {
			t.Errorf("until %v: %q, want %q", c.until, got, c.want)
		}
	}
	for _, until := range []time.Time{t0.Add(-time.Minute), t3.Add(100)} {
		if _, err := a.r.Restore(t.Context(), a.disk, "refused", backup.RestoreOptions{Until: until}); !errors.Is(err, backup.ErrOutOfRange) {
			t.Errorf("until %v: %v", until, err)
		}
	}
	for _, name := range []string{"refused", "refused" + backup.Restoring} {
		if _, err := a.disk.Stat(name); err == nil {
			t.Errorf("a refused restore made %s", name)
		}
	}
	stats, err := a.db.Stats()
	a.ok(err)
	reaches := func() uint64 {
		last, err := a.r.Reaches(t.Context(), account, a.disk, a.dir+"/"+account)
		a.ok(err)
		return last
	}
	if got := reaches(); got != stats.LastSequence {
		t.Errorf("the archive reaches sequence %d, want %d", got, stats.LastSequence)
	}
	a.ok(backup.PutMark(t.Context(), a.target, account, a.disk, a.dir+"/"+account, stats.LastSequence, t3.Add(time.Minute)))
	if got := a.restored("marked", t3.Add(time.Minute)); got != "a b c d" {
		t.Errorf("until the mark: %q", got)
	}
	// The database is restored to t1 and goes on. Its first history can still be restored.
	a.ok(a.db.Close())
	a.open("restored2")
	if got := reaches(); got != 0 {
		t.Errorf("the archive of the new epoch reaches sequence %d", got)
	}
	a.now = a.now.Add(time.Hour)
	a.put("x")
	a.backup()
	t4 := a.put("y")
	if first, second := a.restored("first", t3), a.restored("second", t4); first != "a b c d" || second != "a b x y" {
		t.Errorf("restored %q and %q", first, second)
	}
	report, err := a.r.Verify(t.Context(), "", nil)
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
	a.ok(a.db.Close())
}

// TestRestoreUntilOfOlderCopy puts a checkpoint in the place of a database that was archived
// further. The copy gets a new epoch, once, and moments of both histories can be restored.
func TestRestoreUntilOfOlderCopy(t *testing.T) {
	a := newArchived(t)
	fork := func(want bool) {
		t.Helper()
		if forked, err := a.r.Fork(t.Context(), account, a.disk, a.dir+"/"+account); forked != want || err != nil {
			t.Errorf("Fork = %v, %v; want %v", forked, err, want)
		}
	}
	a.put("a")
	a.backup()
	a.ok(a.db.Checkpoint(t.Context(), "copy/"+account))
	a.put("b")
	old := a.put("c")
	a.ok(a.db.Close())
	fork(false) // it is the database itself
	a.dir = "copy"
	fork(true)
	fork(false)
	a.open("copy")
	a.now = a.now.Add(time.Hour)
	a.put("x")
	a.backup()
	a.put("y")
	until := a.put("z")
	if first, second := a.restored("first", old), a.restored("second", until); first != "a b c" || second != "a x y z" {
		t.Errorf("restored %q and %q, want the histories of the database and of its copy", first, second)
	}
	a.ok(a.db.Close())
	fork(false)
}

// TestForkBesideDamage puts a checkpoint in the place of a database whose only backup is damaged: the
// archive says that the copy is older.
func TestForkBesideDamage(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	a.ok(a.db.Checkpoint(t.Context(), "copy/"+account))
	a.put("b")
	stats, err := a.db.Stats()
	a.ok(err)
	a.ok(a.db.Close())
	objects, err := a.target.List(t.Context(), account+"/backups/")
	a.ok(err)
	a.target.Patch(objects[0].Name, []byte("damage"))
	for dir, want := range map[string]bool{a.dir: false, "copy": true} {
		if forked, err := a.r.Fork(t.Context(), account, a.disk, dir+"/"+account); forked != want || err != nil {
			t.Errorf("Fork in %s = %v, %v; want %v", dir, forked, err, want)
		}
	}
	if last, err := a.r.Reaches(t.Context(), account, a.disk, a.dir+"/"+account); last != stats.LastSequence || err != nil {
		t.Errorf("the archive reaches sequence %d, want %d; error %v", last, stats.LastSequence, err)
	}
}

// TestForkByBackups has backups and no archive. A copy is older if a backup of the same database and epoch has later writes, and not if
// one of another database or epoch has. Each restore gets an epoch that no backup has.
func TestForkByBackups(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	main := e.db
	defer func() { e.db = main }() // for its cleanup
	e.fill("a", 4)
	e.ok(main.Checkpoint(t.Context(), "older/"+account))
	e.fill("b", 4)
	first := e.mustCreate(r)
	e.ok(main.Checkpoint(t.Context(), "same/"+account))

	// backupOf makes a backup of a database with more writes.
	backupOf := func(dir string) backup.Info {
		t.Helper()
		var err error
		e.db, err = engine.Open(dir+"/"+account, engine.Options{FS: e.disk, MemoryBytes: 1 << 20, SegmentBytes: 64 << 10})
		e.ok(err)
		if dir == "other" {
			e.ok(e.db.CreateTable(t.Context(), "Table"))
		}
		e.fill("c", 20)
		info := e.mustCreate(r)
		e.ok(e.db.Close())
		return info
	}
	var epochs []uint64
	for _, dir := range []string{"one", "two"} {
		_, err := r.Restore(t.Context(), e.disk, dir, backup.RestoreOptions{ID: first.ID})
		e.ok(err)
		epochs = append(epochs, backupOf(dir).Epoch)
	}
	other := backupOf("other")
	if epochs[0] <= first.Epoch || epochs[1] <= epochs[0] || other.LastSequence <= first.LastSequence {
		t.Errorf("epochs %v after %d, last sequence %d after %d", epochs, first.Epoch, other.LastSequence, first.LastSequence)
	}
	for dir, want := range map[string]bool{"same": false, "older": true, "one": false, "other": false} {
		if forked, err := r.Fork(t.Context(), account, e.disk, dir+"/"+account); forked != want || err != nil {
			t.Errorf("Fork of %s = %t, %v; want %t", dir, forked, err, want)
		}
	}
	objects, err := e.target.List(t.Context(), account+"/backups/")
	e.ok(err)
	for _, object := range objects[1:3] { // of one and two
		e.target.Patch(object.Name, []byte("damage"))
	}
	_, err = r.Restore(t.Context(), e.disk, "three", backup.RestoreOptions{ID: first.ID})
	e.ok(err)
	if got := backupOf("three").Epoch; got <= epochs[1] {
		t.Errorf("epoch %d beside the damaged manifests of %v", got, epochs)
	}
}

// TestUnlistedEpochs fails each List with which Fork and Restore look for later writes and for epochs. A database that went on without
// them would get an epoch of another history, or none of its own.
func TestUnlistedEpochs(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.ok(a.db.Checkpoint(t.Context(), "copy/"+account))
	a.put("b")
	a.backup()
	a.ok(a.db.Close())
	for name, do := range map[string]func(*backup.Repository, int) error{
		"Fork": func(r *backup.Repository, n int) error {
			disk := a.disk.Clone()
			forked, err := r.Fork(t.Context(), account, disk, "copy/"+account)
			if forked != (err == nil) {
				t.Errorf("call %d of List: Fork = %t, %v", n, forked, err)
			}
			return err
		},
		"Restore": func(r *backup.Repository, n int) error {
			_, err := r.Restore(t.Context(), a.disk.Clone(), "restored", backup.RestoreOptions{})
			return err
		},
	} {
		for n, ended := 1, false; !ended; n++ {
			target := &failingCall{Target: a.target, method: "List", n: n}
			err := do(target.open(t), n)
			ended = target.calls < n
			if ended && err != nil || !ended && !errors.Is(err, errCall) {
				t.Errorf("%s, call %d of List fails: %t, error %v", name, n, !ended, err)
			}
			if ended && n < 4 {
				t.Errorf("%s calls List %d times", name, n-1)
			}
		}
	}
}

// TestRestoreUntilOfReplacedDatabase puts a database of another machine in the place of one. Its
// writes are older, and a moment before the exchange is one of the database that was there.
func TestRestoreUntilOfReplacedDatabase(t *testing.T) {
	a := newArchived(t)
	other, err := engine.Open("other/"+account, engine.Options{FS: a.disk, Testing: engine.TestHooks{Manual: true, Clock: a}})
	a.ok(err)
	a.ok(other.CreateTable(t.Context(), "Things"))
	_, err = other.Apply(t.Context(), "Things", store.Insert(edm.Entity{Key: edm.Key{Row: "other"}}))
	a.ok(errors.Join(err, other.Close()))
	earliest := a.put("a")
	a.backup()
	before := a.put("b")
	a.ok(a.db.Close())
	a.now = a.now.Add(time.Hour)
	a.open("other")
	a.backup()
	after := a.put("c")
	if first, second := a.restored("first", before), a.restored("second", after); first != "a b" || second != "c other" {
		t.Errorf("restored %q and %q, want the writes of each database", first, second)
	}
	a.ok(a.db.Close())

	objects, err := a.target.List(t.Context(), account+"/backups/")
	a.ok(err)
	a.target.Patch(objects[0].Name, []byte("damage"))
	for _, until := range []time.Time{earliest, before} {
		if _, err := a.r.Restore(t.Context(), a.disk, "damaged", backup.RestoreOptions{Until: until}); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("Restore without the manifest of the first database: %v, want %v", err, store.ErrCorrupt)
		}
	}
	if got := a.restored("later", after); got != "c other" {
		t.Errorf("restored %q without the manifest of the first database", got)
	}
}

// TestRestoreUntilOfReturnedDatabase puts a database in the place of another one that was away for
// an hour. It has no later writes than before, and a moment of that hour is one of the other.
func TestRestoreUntilOfReturnedDatabase(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	before := a.put("b")
	a.ok(a.db.Close())
	a.now = a.now.Add(time.Hour)
	a.open("other")
	a.ok(a.db.CreateTable(t.Context(), "Things"))
	a.backup()
	during := a.put("other")
	a.ok(a.db.Close())
	a.now = a.now.Add(time.Hour)
	a.open("data")
	a.backup()
	after := a.put("c")
	for i, c := range []struct {
		until time.Time
		want  string
	}{{before, "a b"}, {during, "other"}, {after, "a b c"}} {
		if got := a.restored(fmt.Sprint("restored", i), c.until); got != c.want {
			t.Errorf("until %v: %q, want %q", c.until, got, c.want)
		}
	}
	a.ok(a.db.Close())

	// Without the manifest of the other database, its hour must not pass for one of the first.
	objects, err := a.target.List(t.Context(), account+"/backups/")
	a.ok(err)
	r, err := backup.Open(t.Context(), &failOnce{Target: a.target, name: objects[1].Name})
	a.ok(err)
	if _, err := r.Restore(t.Context(), a.disk, "failed", backup.RestoreOptions{Until: during}); !errors.Is(err, errOnce) {
		t.Errorf("Restore: %v, want %v", err, errOnce)
	}
	r, err = backup.Open(t.Context(), &failOnce{Target: a.target, name: objects[1].Name})
	a.ok(err)
	if _, err := r.Restore(t.Context(), a.disk, "named", backup.RestoreOptions{Until: before, ID: path.Base(objects[0].Name)}); err != nil {
		t.Errorf("Restore of a backup beside one that cannot be read: %v", err)
	}
	a.target.Patch(objects[1].Name, []byte("damage"))
	if _, err := a.r.Restore(t.Context(), a.disk, "damaged", backup.RestoreOptions{Until: during}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Restore: %v, want %v", err, store.ErrCorrupt)
	}
	if first, second := a.restored("before", before), a.restored("after", after); first != "a b" || second != "a b c" {
		t.Errorf("restored %q and %q with a damaged manifest between", first, second)
	}
}

var errOnce = errors.New("injected")

// failOnce is a Target that fails to read an object, once.
type failOnce struct {
	backup.Target
	name string
}

func (f *failOnce) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == f.name {
		f.name = ""
		return nil, errOnce
	}
	return f.Target.Get(ctx, name)
}

// TestFirstPossibleTime asks for a moment before the first backup of a restored database, whose
// writes are older. The error names a time that can be restored.
func TestFirstPossibleTime(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	first := a.backup()
	a.ok(a.db.Close())
	_, err := a.r.Restore(t.Context(), a.disk, "again", backup.RestoreOptions{ID: first.ID})
	a.ok(err)
	a.now = a.now.Add(time.Hour)
	a.open("again")
	info := a.backup()
	a.put("b")
	a.ok(a.db.Close())
	_, err = a.r.Prune(t.Context(), account, 1)
	a.ok(err)
	_, err = a.r.Restore(t.Context(), a.disk, "refused", backup.RestoreOptions{Until: a.now.Add(-time.Minute)})
	if want := info.Time.Format(time.RFC3339Nano); !errors.Is(err, backup.ErrOutOfRange) || !strings.Contains(err.Error(), want) {
		t.Errorf("Restore: %v, want the first possible time %s", err, want)
	}
	if got := a.restored("restored", info.Time); got != "a" {
		t.Errorf("restored %q, want a", got)
	}
}

// TestReachesNoGap writes while nothing is archived, and then with the archive again.
func TestReachesNoGap(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	a.put("b")
	stats, err := a.db.Stats()
	a.ok(err)
	a.ok(a.db.Close())
	o := engine.Options{FS: a.disk, Testing: engine.TestHooks{Manual: true, Clock: a}}
	db, err := engine.Open(a.dir+"/"+account, o)
	a.ok(err)
	_, err = db.Apply(t.Context(), "Things", store.Insert(edm.Entity{Key: edm.Key{Row: "c"}}))
	a.ok(err)
	a.ok(db.Close())
	a.open(a.dir)
	a.put("d")
	a.ok(a.db.Close())
	if last, err := a.r.Reaches(t.Context(), account, a.disk, a.dir+"/"+account); err != nil || last != stats.LastSequence {
		t.Errorf("the archive reaches %d, %v; a write behind %d is not archived", last, err, stats.LastSequence)
	}
}

// TestRestoreUntilOfDamagedAccount restores two accounts, of which one has no backup that can be
// read.
func TestRestoreUntilOfDamagedAccount(t *testing.T) {
	a := newArchived(t)
	t0 := a.put("a")
	a.backup()
	objects, err := a.target.List(t.Context(), account+"/backups/")
	a.ok(err)
	if len(objects) != 1 {
		t.Fatalf("%d manifests", len(objects))
	}
	b, err := a.target.Get(t.Context(), objects[0].Name)
	a.ok(err)
	text, err := io.ReadAll(b)
	a.ok(errors.Join(err, b.Close()))
	text[len(text)/2] ^= 4
	a.ok(a.target.Put(t.Context(), strings.Replace(objects[0].Name, account, "other", 1), bytes.NewReader(text)))
	if _, err := a.r.Restore(t.Context(), a.disk, "restored", backup.RestoreOptions{Until: t0}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Restore: %v, want %v", err, store.ErrCorrupt)
	}
	list, err := a.r.Restore(t.Context(), a.disk, "restored", backup.RestoreOptions{Account: account, Until: t0})
	if err != nil || len(list) != 1 {
		t.Errorf("Restore of the other account: %v, %v", list, err)
	}
}

// TestRestoreUntilWithinRecord restores moments within a record of several batches. They have
// none of the record.
func TestRestoreUntilWithinRecord(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	a.now = a.now.Add(time.Second)
	var batches [][]store.Op
	for _, p := range []string{"b", "c", "d", "c"} {
		batches = append(batches, []store.Op{store.InsertOrReplace(edm.Entity{Key: edm.Key{Partition: p, Row: p}})})
	}
	results, err := a.db.ApplyBatches(t.Context(), "Things", batches)
	a.ok(err)
	a.put("e")
	for i, want := range []string{"a", "a", "a", "a b c d"} {
		if got := a.restored(fmt.Sprint("restored", i), results[i][0].Timestamp.Time()); got != want {
			t.Errorf("until the Timestamp of batch %d: %q, want %q", i, got, want)
		}
	}
	a.ok(a.db.Close())
}

// TestArchiveCare damages a chunk, which Verify finds, and removes old backups with the chunks
// that nothing else needs.
func TestArchiveCare(t *testing.T) {
	a := newArchived(t)
	t0 := a.put("a")
	a.backup()
	a.put("b")
	a.put("c")
	kept := a.backup()
	t3 := a.put("d")
	chunks := func() (names []string) {
		objects, err := a.target.List(t.Context(), account+"/archive/")
		a.ok(err)
		for _, o := range objects {
			names = append(names, o.Name)
		}
		return names
	}
	before := chunks()
	a.target.Patch(before[1], []byte("damage"))
	report, err := a.r.Verify(t.Context(), account, nil)
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Object != before[1] {
		t.Errorf("verify: %+v, %v", report, err)
	}
	_, err = a.r.Prune(t.Context(), account, 1)
	a.ok(err)
	if after := chunks(); !slices.Equal(after, before[len(before)-1:]) {
		t.Errorf("prune left %q of %q for the backup up to sequence %d", after, before, kept.LastSequence)
	}
	if got := a.restored("restored", t3); got != "a b c d" {
		t.Errorf("after prune: %q", got)
	}
	if _, err := a.r.Restore(t.Context(), a.disk, "refused", backup.RestoreOptions{Until: t0}); !errors.Is(err, backup.ErrOutOfRange) {
		t.Errorf("restore of a removed backup: %v", err)
	}
	a.ok(a.db.Close())
}

// TestRestoreUntilKilled kills a restore at many of its operations. The same restore then
// goes on.
func TestRestoreUntilKilled(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	a.put("b")
	rows := func(yield func(edm.Entity, error) bool) {
		yield(edm.Entity{Key: edm.Key{Row: "c"}}, nil)
	}
	_, err := a.db.Load(t.Context(), "Things", rows, engine.LoadOptions{})
	a.ok(err)
	until := a.put("d")
	a.ok(a.db.Close())
	var killed []*vfs.Mem
	n := 0
	a.disk.OnOp(func(vfs.Op) {
		if n++; n%5 == 0 {
			killed = append(killed, a.disk.Clone())
		}
	})
	want := a.restored("restored", until)
	a.disk.OnOp(nil)
	if want != "a b c d" || len(killed) < 10 {
		t.Fatalf("restored %q with %d operations", want, n)
	}
	for i, disk := range killed {
		a.disk = disk
		if _, err := disk.Stat("restored"); err == nil {
			continue // it was complete
		}
		if got := a.restored("restored", until); got != want {
			t.Errorf("killed before operation %d: %q", 5*(i+1), got)
		}
	}
}

// TestRestoreUntilIdle restores a moment after the last write, when the archive has a mark
// and no chunk: retention has removed those before the oldest backup.
func TestRestoreUntilIdle(t *testing.T) {
	a := newArchived(t)
	at := a.put("a")
	a.backup()
	objects, err := a.target.List(t.Context(), account+"/archive/")
	a.ok(err)
	for _, object := range objects {
		a.ok(a.target.Delete(t.Context(), object.Name))
	}
	stats, err := a.db.Stats()
	a.ok(err)
	a.ok(backup.PutMark(t.Context(), a.target, account, a.disk, a.dir+"/"+account, stats.LastSequence, at.Add(time.Minute)))
	if got := a.restored("idle", at.Add(time.Minute)); got != "a" {
		t.Errorf("until the mark: %q", got)
	}
	a.ok(a.db.Close())
}

// TestProgress verifies and restores a backup and its archive: the bytes done rise to all.
func TestProgress(t *testing.T) {
	a := newArchived(t)
	a.put("1")
	a.backup()
	a.put("2")
	a.backup()
	until := a.put("3")
	a.ok(a.db.Close())
	for name, work := range map[string]func(backup.Progress) error{
		"verify": func(p backup.Progress) error { _, err := a.r.Verify(t.Context(), account, p); return err },
		"restore": func(p backup.Progress) error {
			_, err := a.r.Restore(t.Context(), a.disk, "restored", backup.RestoreOptions{Progress: p})
			return err
		},
		"restore until": func(p backup.Progress) error {
			_, err := a.r.Restore(t.Context(), a.disk, "until", backup.RestoreOptions{Until: until, Progress: p})
			return err
		},
	} {
		var calls []int64
		var all int64
		a.ok(work(func(done, total int64) { calls, all = append(calls, done), total }))
		if len(calls) < 3 || !slices.IsSorted(calls) || calls[len(calls)-1] != all {
			t.Errorf("%s: progress is %d of %d", name, calls, all)
		}
	}
}

// TestBesideNewerFormat has a backup that a newer build made. It must not prevent the use of an older one with the archive.
func TestBesideNewerFormat(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	a.backup()
	a.put("b")
	a.backup()
	c := a.put("c")
	objects, err := a.target.List(t.Context(), account+"/backups/")
	a.ok(err)
	name := objects[1].Name
	b := a.object(name)
	_, body, _ := strings.Cut(string(b), "\n")
	a.ok(a.target.Delete(t.Context(), name))
	a.ok(a.target.Put(t.Context(), name, strings.NewReader(fmt.Sprintf("tablerock-backup 2 %016x\n%s", xxhash.Sum64String("2\n"+body), body))))

	if list, err := a.r.List(t.Context(), account); len(list) != 1 || !errors.Is(err, feature.ErrNewerFormat) {
		t.Errorf("List: %d backups, %v", len(list), err)
	}
	if got := a.restored("restored", c); got != "a b c" {
		t.Errorf("restored %q", got)
	}
	stats, err := a.db.Stats()
	a.ok(err)
	if last, err := a.r.Reaches(t.Context(), account, a.disk, a.dir+"/"+account); last != stats.LastSequence || err != nil {
		t.Errorf("the archive reaches sequence %d, want %d; error %v", last, stats.LastSequence, err)
	}
	a.ok(a.db.Close())
	if forked, err := a.r.Fork(t.Context(), account, a.disk, a.dir+"/"+account); forked || err != nil {
		t.Errorf("Fork = %t, %v", forked, err)
	}

	// The others are verified: a chunk of a newer build and a damaged file of the first backup.
	chunks, err := a.target.List(t.Context(), account+"/archive/")
	a.ok(err)
	files, err := a.target.List(t.Context(), account+"/files/")
	a.ok(err)
	b = a.object(chunks[0].Name)
	b[8]++ // the version
	binary.LittleEndian.PutUint64(b[96:], xxhash.Sum64(b[:96]))
	a.ok(errors.Join(a.target.Delete(t.Context(), chunks[0].Name), a.target.Put(t.Context(), chunks[0].Name, bytes.NewReader(b))))
	before, err := a.r.Verify(t.Context(), account, nil)
	if len(before.Findings) != 0 || !errors.Is(err, feature.ErrNewerFormat) {
		t.Errorf("Verify: %v, %v", before.Findings, err)
	}
	var newer []string
	for _, f := range before.Newer {
		newer = append(newer, f.Object)
	}
	if want := []string{name, chunks[0].Name}; !slices.Equal(newer, want) {
		t.Errorf("Verify has not checked %q, want %q", newer, want)
	}
	a.ok(a.target.Delete(t.Context(), files[0].Name))
	after, err := a.r.Verify(t.Context(), account, nil)
	if len(after.Findings) != 1 || len(after.Newer) != 2 || !errors.Is(err, feature.ErrNewerFormat) || after.Objects != before.Objects {
		t.Errorf("Verify of a missing file: %+v, %v", after, err)
	}
}

// object returns the bytes of an object of the target.
func (a *archived) object(name string) []byte {
	a.Helper()
	r, err := a.target.Get(a.Context(), name)
	a.ok(err)
	b, err := io.ReadAll(r)
	a.ok(errors.Join(err, r.Close()))
	return b
}
