package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// env is a database and a target for its backups.
type env struct {
	*testing.T
	disk   *vfs.Mem
	db     *engine.DB
	target *backuptest.Target
	now    time.Time
}

func newEnv(t *testing.T) *env {
	e := &env{T: t, disk: vfs.NewMem(), target: backuptest.NewTarget(7, 0), now: time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)}
	var err error
	e.db, err = engine.Open("data/"+account, engine.Options{FS: e.disk, MemoryBytes: 1 << 20, SegmentBytes: 64 << 10})
	e.ok(err)
	t.Cleanup(func() { e.ok(e.db.Close()) })
	e.ok(e.db.CreateTable(t.Context(), "Table"))
	return e
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// fill writes n entities of a partition and flushes them to a file of their own.
func (e *env) fill(partition string, n int) {
	e.Helper()
	for i := range n {
		_, err := e.db.Apply(e.Context(), "Table", store.InsertOrReplace(edm.Entity{
			Key:        edm.Key{Partition: partition, Row: fmt.Sprint(i)},
			Properties: edm.Properties{{Name: "S", Value: edm.String(strings.Repeat("x", 100+i))}},
		}))
		e.ok(err)
	}
	e.ok(e.db.Flush(e.Context()))
}

func (e *env) open() *backup.Repository {
	e.Helper()
	r, err := backup.Init(e.Context(), e.target)
	e.ok(err)
	return r
}

// create makes a backup an hour after the last one.
func (e *env) create(r *backup.Repository) (backup.Info, error) {
	e.now = e.now.Add(time.Hour)
	return r.Create(e.Context(), backup.Source{
		Account: account, DB: e.db, FS: e.disk, Scratch: "data/.backup", Clock: func() time.Time { return e.now },
	}, nil)
}

func (e *env) mustCreate(r *backup.Repository) backup.Info {
	e.Helper()
	info, err := e.create(r)
	e.ok(err)
	return info
}

// object returns the name of the only object that contains all words.
func (e *env) object(words ...string) string {
	e.Helper()
	objects, err := e.target.List(e.Context(), "")
	e.ok(err)
	var found []string
	for _, o := range objects {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(o.Name, w) }) {
			found = append(found, o.Name)
		}
	}
	if len(found) == 0 {
		e.Fatalf("no object with %q in %v", words, objects)
	}
	return found[0]
}

func (e *env) bytes(name string) []byte {
	e.Helper()
	r, err := e.target.Get(e.Context(), name)
	e.ok(err)
	b, err := io.ReadAll(r)
	e.ok(err)
	return b
}

// TestCreateCopiesWhatIsNew checks that a second backup copies only new files, and a third
// one without a write no sstable.
func TestCreateCopiesWhatIsNew(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 400)
	first := e.mustCreate(r)
	e.fill("b", 3)
	second := e.mustCreate(r)
	third := e.mustCreate(r)
	if first.CopiedBytes != first.Bytes || second.CopiedBytes*3 > second.Bytes || third.CopiedBytes > 1000 {
		t.Errorf("copied %d of %d, then %d of %d, then %d", first.CopiedBytes, first.Bytes, second.CopiedBytes, second.Bytes, third.CopiedBytes)
	}
	if second.LastSequence != first.LastSequence+3 || third.LastSequence != second.LastSequence {
		t.Errorf("last sequences %d, %d, %d", first.LastSequence, second.LastSequence, third.LastSequence)
	}
	if list, err := r.List(t.Context(), account); err != nil || len(list) != 3 || !slices.Equal(list[0].Tables, []string{"Table"}) {
		t.Errorf("List = %+v, %v", list, err)
	}
}

// TestCreateProgress makes a backup of several files: each call has the bytes of all of them as the total.
func TestCreateProgress(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	for _, partition := range []string{"a", "b", "c"} {
		e.fill(partition, 100)
	}
	var done, totals []int64
	info, err := r.Create(t.Context(), backup.Source{Account: account, DB: e.db, FS: e.disk, Scratch: "data/.backup", Clock: time.Now}, func(n, total int64) {
		done, totals = append(done, n), append(totals, total)
	})
	e.ok(err)
	if len(done) < 3 || !slices.IsSorted(done) || done[len(done)-1] != info.Bytes {
		t.Errorf("progress is %d of %d", done, info.Bytes)
	}
	if slices.Min(totals) != info.Bytes || slices.Max(totals) != info.Bytes {
		t.Errorf("totals are %d, want %d", totals, info.Bytes)
	}
}

// TestAccountNames checks that a name that is no element of an object's name stores and removes
// nothing: its backups would not be listed, and the name "" would be that of all accounts.
func TestAccountNames(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 3)
	e.mustCreate(r)
	e.mustCreate(r)
	want, err := e.target.List(t.Context(), "")
	e.ok(err)
	for _, name := range []string{"", ".", "..", "a/b", "../" + account, account + "/../b", account + "/", "a b"} {
		_, create := r.Create(t.Context(), backup.Source{Account: name, DB: e.db, FS: e.disk, Scratch: "data/.backup", Clock: time.Now}, nil)
		_, prune := r.Prune(t.Context(), name, 1)
		_, fork := r.Fork(t.Context(), name, e.disk, "data/"+account)
		_, reaches := r.Reaches(t.Context(), name, e.disk, "data/"+account)
		put := backup.NewArchive(e.target, name).Put(t.Context(), "00000000/x", strings.NewReader("x"))
		mark := backup.PutMark(t.Context(), e.target, name, e.disk, "data/"+account, 1, e.now)
		for call, err := range map[string]error{"Create": create, "Prune": prune, "Fork": fork, "Reaches": reaches, "Archive.Put": put, "PutMark": mark} {
			if err == nil {
				t.Errorf("%s of account %q: no error", call, name)
			}
		}
		got, err := e.target.List(t.Context(), "")
		e.ok(err)
		if !slices.Equal(got, want) {
			t.Fatalf("account %q: the objects are %v, want %v", name, got, want)
		}
	}
}

// TestCreateKeepsForeignFiles gives Create scratch directories that hold something else than what
// a backup leaves, which it must not remove.
func TestCreateKeepsForeignFiles(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 3)
	e.ok(e.disk.MkdirAll("notes/deep"))
	dump := func() string {
		d, err := vfs.Dump(e.disk, "/")
		e.ok(err)
		return d
	}
	before := dump()
	for _, dir := range []string{"data/" + account, "data", "notes", "/", ""} {
		_, err := r.Create(t.Context(), backup.Source{Account: account, DB: e.db, FS: e.disk, Scratch: dir, Clock: time.Now}, nil)
		if err == nil || dir != "" && !errors.Is(err, fs.ErrExist) {
			t.Errorf("scratch directory %q: error %v, want one that matches fs.ErrExist", dir, err)
		}
		if diff := cmp.Diff(before, dump()); diff != "" {
			t.Fatalf("Create with the scratch directory %q changed files (-before +after):\n%s", dir, diff)
		}
	}
	e.ok(e.db.Checkpoint(t.Context(), "left"))
	e.ok(e.disk.Remove("left/MANIFEST"))
	if _, err := r.Create(t.Context(), backup.Source{Account: account, DB: e.db, FS: e.disk, Scratch: "left", Clock: time.Now}, nil); err != nil {
		t.Errorf("with what a killed call left: %v", err)
	}
}

// TestCreateReplacesTruncatedObjects checks that the next backup stores a file again whose
// object has another size.
func TestCreateReplacesTruncatedObjects(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 50)
	e.mustCreate(r)
	name := e.object(".sst")
	e.target.Patch(name, e.bytes(name)[:100])
	e.mustCreate(r)
	if report, err := r.Verify(t.Context(), account, nil); err != nil || len(report.Findings) > 0 || report.Backups != 2 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

// TestRestoreAt restores the newest backup up to a time, by id, and refuses others, and a directory inside a database.
func TestRestoreAt(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	var ids []string
	for i := range 3 {
		e.fill("p", i+1)
		ids = append(ids, e.mustCreate(r).ID)
	}
	first := e.now.Add(-2 * time.Hour)
	for _, c := range []struct {
		o    backup.RestoreOptions
		want int // index of the backup, -1 for backup.ErrNoBackup
	}{
		{backup.RestoreOptions{}, 2},
		{backup.RestoreOptions{At: first}, 0},
		{backup.RestoreOptions{At: first.Add(-1)}, -1},
		{backup.RestoreOptions{At: first.Add(90 * time.Minute)}, 1},
		{backup.RestoreOptions{ID: ids[1], Account: account}, 1},
		{backup.RestoreOptions{ID: "20260101T000000.0000000Z"}, -1},
		{backup.RestoreOptions{Account: "other"}, -1},
	} {
		list, err := r.Restore(t.Context(), e.disk, "restored", c.o)
		if c.want < 0 {
			if !errors.Is(err, backup.ErrNoBackup) {
				t.Errorf("%+v: %v, want ErrNoBackup", c.o, err)
			}
			continue
		}
		if err != nil || len(list) != 1 || list[0].ID != ids[c.want] {
			t.Errorf("%+v restores %+v, %v; want %s", c.o, list, err, ids[c.want])
		}
		e.ok(removeAll(e.disk, "restored"))
	}
	before, err := vfs.Dump(e.disk, "/")
	e.ok(err)
	_, err = r.Restore(t.Context(), e.disk, "data/"+account+"/restored", backup.RestoreOptions{})
	after, dumpErr := vfs.Dump(e.disk, "/")
	e.ok(dumpErr)
	if !errors.Is(err, fs.ErrInvalid) || before != after {
		t.Errorf("a restore into a database: %v, want %v; changed files: %s", err, fs.ErrInvalid, cmp.Diff(before, after))
	}
}

// TestRestoredNumbers restores a backup twice. The databases have one id, so their next files must
// have different numbers.
func TestRestoredNumbers(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.mustCreate(r)
	var next []uint64
	for _, dest := range []string{"one", "two"} {
		_, err := r.Restore(t.Context(), e.disk, dest, backup.RestoreOptions{})
		e.ok(err)
		m, err := manifest.Read(e.disk, dest+"/"+account)
		e.ok(err)
		next = append(next, m.NextFile)
	}
	if next[0] == next[1] {
		t.Errorf("both go on with the number %d", next[0])
	}
}

// TestNoPath gives "" in the place of directories: it is not the working directory.
func TestNoPath(t *testing.T) {
	const want = "the path of the directory is empty"
	e := newEnv(t)
	r := e.open()
	e.mustCreate(r)
	_, restore := r.Restore(t.Context(), e.disk, "", backup.RestoreOptions{})
	dir := backup.NewDir(vfs.NewMem(), "")
	_, lock := dir.Lock()
	_, open := backup.Init(t.Context(), dir)
	put := backup.NewArchive(dir, account).Put(t.Context(), "chunk", strings.NewReader(""))
	for call, err := range map[string]error{"Restore": restore, "Lock": lock, "Init": open, "Put": put} {
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", call, err, want)
		}
	}
}

// TestSourceDefaults makes a backup with the least that a Source needs.
func TestSourceDefaults(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	db, err := engine.Open(dir+"/db", engine.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := backup.Init(t.Context(), backup.NewDir(vfs.OS(), dir+"/backups"))
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	info, err := r.Create(t.Context(), backup.Source{Account: account, DB: db, Scratch: dir + "/scratch"}, nil)
	if err != nil || info.Time.Before(before.Truncate(100)) || info.Time.After(time.Now()) {
		t.Errorf("got %+v, %v; want a time after %v", info, err, before)
	}
}

func removeAll(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	for _, name := range names {
		if info, statErr := fsys.Stat(dir + "/" + name); statErr == nil && info.Dir {
			err = errors.Join(err, removeAll(fsys, dir+"/"+name))
			continue
		}
		err = errors.Join(err, fsys.Remove(dir+"/"+name))
	}
	return errors.Join(err, fsys.Remove(dir))
}

// TestCreateWithoutSpace makes a backup on a disk that files of failed calls have filled, which no
// backup needs, because compactions have replaced them since.
func TestCreateWithoutSpace(t *testing.T) {
	e := newEnv(t)
	disk := vfs.NewMem()
	target := backup.NewDir(disk, "backups")
	r, err := backup.Init(t.Context(), target)
	e.ok(err)
	e.fill("p", 100)
	first := e.mustCreate(r)
	e.fill("q", 100)
	left := account + "/files/left.sst"
	e.ok(target.Put(t.Context(), left, strings.NewReader(strings.Repeat("x", 20<<10))))
	disk.SetCapacity(disk.Used() + 100)
	second, err := e.create(r)
	e.ok(err)
	disk.SetCapacity(0)
	if _, err := target.Get(t.Context(), left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a failed call left: %v, want %v", err, fs.ErrNotExist)
	}
	for _, id := range []string{first.ID, second.ID} {
		_, err := r.Restore(t.Context(), vfs.NewMem(), "restored", backup.RestoreOptions{ID: id})
		e.ok(err)
	}
}

// fullTarget has no space for objects of a kind until an object is removed.
type fullTarget struct {
	backup.Target
	kind, left string
	err        error
}

func (f *fullTarget) refuse(ctx context.Context, name string) error {
	objects, err := f.List(ctx, f.left)
	if err == nil && len(objects) > 0 && strings.Contains(name, f.kind) {
		return f.err
	}
	return err
}

// Put implements backup.Target.
func (f *fullTarget) Put(ctx context.Context, name string, r io.Reader) error {
	if err := f.refuse(ctx, name); err != nil {
		return err
	}
	return f.Target.Put(ctx, name, r)
}

// PutIfAbsent implements backup.Target.
func (f *fullTarget) PutIfAbsent(ctx context.Context, name string, r io.Reader) error {
	if err := f.refuse(ctx, name); err != nil {
		return err
	}
	return f.Target.PutIfAbsent(ctx, name, r)
}

// TestCreateWithoutSpaceForOne makes a backup where what a failed call left takes the space, or
// the quota, for the files or for the manifest.
func TestCreateWithoutSpaceForOne(t *testing.T) {
	for _, kind := range []string{"/files/", "/backups/"} {
		for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
			e := newEnv(t)
			left := account + "/files/left.sst"
			r, err := backup.Init(t.Context(), &fullTarget{e.target, kind, left, cause})
			e.ok(err)
			e.ok(e.target.Put(t.Context(), left, strings.NewReader("x")))
			e.fill("p", 100)
			if _, err := e.create(r); err != nil {
				t.Errorf("Create with %q for %s: %v", cause, kind, err)
			}
		}
	}
}

// TestDamage damages, truncates and removes each kind of object. Verify names it, a restore
// of the backup fails and makes nothing, and another backup can be restored.
func TestDamage(t *testing.T) {
	for what, words := range map[string][]string{
		"sstable": {".sst"}, "log segment": {".wal"}, "list of files": {".manifest"}, "manifest": {"/backups/"},
	} {
		for how, change := range map[string]func(b []byte) []byte{
			"flipped":   func(b []byte) []byte { c := bytes.Clone(b); c[len(c)/2] ^= 4; return c },
			"truncated": func(b []byte) []byte { return b[:len(b)-1] },
			"empty":     func([]byte) []byte { return []byte{} },
			"missing":   func([]byte) []byte { return nil },
		} {
			if what == "manifest" && how == "missing" {
				continue // the backup does not exist
			}
			t.Run(what+" "+how, func(t *testing.T) {
				e := newEnv(t)
				r := e.open()
				first := e.mustCreate(r)
				e.fill("p", 20)
				_, err := e.db.Apply(t.Context(), "Table", store.Insert(edm.Entity{Key: edm.Key{Partition: "q", Row: "r"}}))
				e.ok(err)
				second := e.mustCreate(r)
				name := e.second(first, words)
				e.target.Patch(name, change(e.bytes(name)))
				report, err := r.Verify(t.Context(), "", nil)
				if err != nil || len(report.Findings) != 1 || report.Findings[0].Object != name || !slices.Equal(report.Findings[0].Backups, []string{second.ID}) {
					t.Errorf("Verify = %+v, %v; want %s", report, err, name)
				}
				_, err = r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{})
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("Restore: %v, want the name %s", err, name)
				}
				if _, err := e.disk.Stat("restored"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a failed restore left its directory: %v", err)
				}
				if list, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{ID: first.ID}); err != nil || list[0].ID != first.ID {
					t.Errorf("Restore of the other backup: %+v, %v", list, err)
				}
			})
		}
	}
}

// second returns the object with the words that the first backup does not need.
func (e *env) second(first backup.Info, words []string) string {
	e.Helper()
	objects, err := e.target.List(e.Context(), "")
	e.ok(err)
	text := string(e.bytes(account + "/backups/" + first.ID))
	for _, o := range objects {
		if strings.Contains(o.Name, words[0]) && !strings.Contains(text, o.Name) && !strings.HasSuffix(o.Name, first.ID) {
			return o.Name
		}
	}
	e.Fatalf("no object with %q", words)
	return ""
}

// TestPruneKeepsWhatItCannotRead checks that Prune removes nothing if a manifest that it
// keeps is damaged.
func TestPruneKeepsWhatItCannotRead(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	for range 3 {
		e.fill("p", 5)
		e.mustCreate(r)
	}
	before, err := e.target.List(t.Context(), "")
	e.ok(err)
	name := e.object("/backups/20261122T18")
	b := e.bytes(name)
	e.target.Patch(name, b[:10])
	if _, err := r.Prune(t.Context(), account, 1); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Prune: %v, want damage", err)
	}
	if after, err := e.target.List(t.Context(), ""); err != nil || len(after) != len(before) {
		t.Errorf("%d objects after Prune, %v; want %d", len(after), err, len(before))
	}
	e.target.Patch(name, b)
	p, err := r.Prune(t.Context(), account, 1)
	if err != nil || p.Backups != 2 || p.Files == 0 {
		t.Errorf("Prune = %+v, %v", p, err)
	}
	if report, err := r.Verify(t.Context(), account, nil); err != nil || len(report.Findings) > 0 || report.Backups != 1 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

// TestOtherDirectories checks that what is no backup directory, or another one, is refused.
func TestOtherDirectories(t *testing.T) {
	e := newEnv(t)
	put(t, e.target, "photos/1.jpg", "x")
	if _, err := backup.Open(t.Context(), e.target); !errors.Is(err, backup.ErrNotBackup) {
		t.Errorf("Open: %v", err)
	}
	if _, err := backup.Init(t.Context(), e.target); !errors.Is(err, backup.ErrNotBackup) || !strings.Contains(err.Error(), "photos/1.jpg") {
		t.Errorf("Init: %v", err)
	}
	e.ok(e.target.Delete(t.Context(), "photos/1.jpg"))
	file, err := e.disk.Create("file")
	e.ok(err)
	e.ok(file.Close())
	if _, err := backup.Open(t.Context(), backup.NewDir(e.disk, "file")); !errors.Is(err, backup.ErrNotBackup) {
		t.Errorf("Open of a file: %v", err)
	}
	r := e.open()
	info := e.mustCreate(r)
	// A manifest that was copied from another backup directory.
	name := account + "/backups/" + info.ID
	b := e.bytes(name)
	e.target = backuptest.NewTarget(8, 0)
	r = e.open()
	put(t, e.target, name, string(b))
	if _, err := r.List(t.Context(), ""); !errors.Is(err, backup.ErrNotBackup) {
		t.Errorf("List: %v", err)
	}
	if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); !errors.Is(err, backup.ErrNotBackup) {
		t.Errorf("Restore: %v", err)
	}
	// What is there already is not an unfinished restore.
	e.mustCreate(r)
	e.ok(e.target.Delete(t.Context(), name))
	e.ok(e.disk.MkdirAll("restored.restoring/account"))
	f, err := e.disk.Create("restored.restoring/account/photo.jpg")
	e.ok(errors.Join(err, f.Close()))
	if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "photo.jpg") {
		t.Errorf("Restore beside other files: %v", err)
	}
}

// TestDamagedMarker damages the 40 bytes that mark a backup directory. Its backups can be restored all
// the same, unless they are of several directories, and nothing more is stored there.
func TestDamagedMarker(t *testing.T) {
	e := newEnv(t)
	before := e.open()
	info := e.mustCreate(before)
	put(t, e.target, "TABLEROCK-BACKUP", "damaged")
	r, err := backup.Open(t.Context(), e.target)
	e.ok(err)
	for _, r := range []*backup.Repository{before, r} {
		_, create := r.Create(t.Context(), backup.Source{Account: account, DB: e.db, FS: e.disk, Scratch: "data/.backup", Clock: time.Now}, nil)
		_, prune := r.Prune(t.Context(), account, 1)
		if !errors.Is(create, store.ErrCorrupt) || !errors.Is(prune, store.ErrCorrupt) {
			t.Errorf("Create: %v; Prune: %v", create, prune)
		}
	}
	if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); err != nil {
		t.Errorf("Restore: %v", err)
	}
	report, err := r.Verify(t.Context(), "", nil)
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Object != "TABLEROCK-BACKUP" {
		t.Errorf("Verify = %+v, %v", report, err)
	}
	if _, err := backup.Init(t.Context(), e.target); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Init: %v", err)
	}
	name := account + "/backups/" + info.ID
	b := e.bytes(name)
	e.target = backuptest.NewTarget(8, 0)
	e.mustCreate(e.open())
	put(t, e.target, name, string(b))
	put(t, e.target, "TABLEROCK-BACKUP", "damaged")
	if _, err := backup.Open(t.Context(), e.target); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Open with the backups of two directories: %v", err)
	}
}

// TestRestoreWithoutSpace restores to a disk with too little space. It makes no directory.
func TestRestoreWithoutSpace(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.mustCreate(r)
	e.disk.SetCapacity(e.disk.Used() + 100)
	if _, err := r.Restore(t.Context(), e.disk, "parent/restored", backup.RestoreOptions{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Restore: %v, want %v", err, syscall.ENOSPC)
	}
	if _, err := e.disk.Stat("parent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the refused restore made a directory: %v", err)
	}
	e.disk.SetCapacity(0)
	e.ok(e.disk.MkdirAll("parent/restored" + backup.Restoring)) // of a restore that was killed
	_, err := r.Restore(t.Context(), e.disk, "parent/restored", backup.RestoreOptions{})
	e.ok(err)
}

// TestRestoreWithoutSpaceAfterOther restores to a disk with too little space where an unfinished
// restore of another account was. Its files do not count as files of this account.
func TestRestoreWithoutSpaceAfterOther(t *testing.T) {
	e := newEnv(t)
	e.fill("p", 100)
	r := e.open()
	info := e.mustCreate(r)
	other := "restored" + backup.Restoring + "/other"
	e.ok(e.disk.MkdirAll(other))
	f, err := e.disk.Create(other + "/000001.sst")
	e.ok(err)
	_, err = f.WriteAt(make([]byte, info.Bytes), 0)
	e.ok(errors.Join(err, f.Close()))
	e.disk.SetCapacity(e.disk.Used() - info.Bytes/2)
	_, err = r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk of restored.restoring has space for") {
		t.Errorf("Restore: %v, want a refusal before it copies", err)
	}
	e.disk.SetCapacity(0)
}

// TestRestoreBesideServer restores where a server has begun to serve the working directory of an
// earlier restore of another account. Its database is not removed.
func TestRestoreBesideServer(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.mustCreate(r)
	dir := "restored" + backup.Restoring
	db, err := engine.Open(dir+"/aaa", engine.Options{FS: e.disk})
	e.ok(err)
	var locked *vfs.LockedError
	if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); !errors.As(err, &locked) {
		t.Errorf("Restore: %v, want that the database is locked", err)
	}
	e.ok(db.Close())
	f, err := e.disk.Create(dir + "/serve.sock")
	e.ok(errors.Join(err, f.Close()))
	_, err = r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{})
	if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "serve.sock") {
		t.Errorf("Restore beside another file: %v", err)
	}
	if _, err := e.disk.Stat(dir + "/aaa/MANIFEST"); err != nil {
		t.Errorf("the database of the server: %v", err)
	}
}

// TestRestoreBesideOneServed restores where a server serves one of the databases of the working
// directory, that of the account or another. None is removed.
func TestRestoreBesideOneServed(t *testing.T) {
	for _, served := range []string{account, "zzz"} {
		e := newEnv(t)
		r := e.open()
		e.mustCreate(r)
		dir := "restored" + backup.Restoring
		idle, err := engine.Open(dir+"/aaa", engine.Options{FS: e.disk})
		e.ok(err)
		e.ok(idle.Close())
		db, err := engine.Open(dir+"/"+served, engine.Options{FS: e.disk})
		e.ok(err)
		var locked *vfs.LockedError
		if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); !errors.As(err, &locked) {
			t.Errorf("Restore: %v, want that the database is locked", err)
		}
		if _, err := e.disk.Stat(dir + "/aaa/MANIFEST"); err != nil {
			t.Errorf("beside the served account %s: %v", served, err)
		}
		e.ok(db.Close())
	}
}

// TestFailingTarget makes, prunes and restores backups on a target that fails by seed. Each
// call that succeeds has done its work, and each listed backup is whole.
func TestFailingTarget(t *testing.T) {
	e := newEnv(t)
	e.open() // the marker
	want := map[string][]string{}
	known := func() (ids []string) {
		e.target.SetFailures(0)
		defer e.target.SetFailures(0.05)
		r := e.open()
		list, err := r.List(t.Context(), account)
		e.ok(err)
		for _, i := range list {
			ids = append(ids, i.ID)
		}
		return ids
	}
	failed := 0
	attempt := func(call func(r *backup.Repository) error) {
		r, err := backup.Open(t.Context(), e.target)
		if err == nil {
			err = call(r)
		}
		if err != nil && !errors.Is(err, backuptest.ErrInjected) {
			t.Fatal(err)
		}
		if err != nil {
			failed++
		}
	}
	for i := range 40 {
		e.fill("p", i)
		before, now := known(), dump(t, e.db)
		attempt(func(r *backup.Repository) error {
			_, err := e.create(r)
			return err
		})
		for _, id := range known() {
			if !slices.Contains(before, id) {
				want[id] = now
			}
		}
		attempt(func(r *backup.Repository) error {
			_, err := r.Prune(t.Context(), account, 4)
			return err
		})
		e.target.SetFailures(0)
		report, err := e.open().Verify(t.Context(), account, nil)
		if err != nil || len(report.Findings) > 0 {
			t.Fatalf("Verify = %+v, %v", report, err)
		}
		e.target.SetFailures(0.05)
	}
	for restored := false; !restored; {
		attempt(func(r *backup.Repository) error {
			list, err := r.Restore(context.WithoutCancel(t.Context()), e.disk, "restored", backup.RestoreOptions{})
			if err != nil {
				return err
			}
			restored = true
			db, err := engine.Open("restored/"+account, engine.Options{FS: e.disk})
			e.ok(err)
			if got := dump(t, db); !slices.Equal(got, want[list[0].ID]) {
				t.Errorf("restored %d lines, want %d", len(got), len(want[list[0].ID]))
			}
			return db.Close()
		})
	}
	if failed < 5 || len(want) < 10 {
		t.Errorf("%d calls failed and %d backups were made: too few", failed, len(want))
	}
}
