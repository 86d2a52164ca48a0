package backup_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// failSyncs wraps a file system. While armed returns true for the name of a directory, its
// sync fails.
func failSyncs(disk vfs.FS, armed func(name string) bool) vfs.FS {
	return errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync-dir" && armed(op.Name) {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
}

// TestArchiveAfterFailedSync archives a chunk again after the sync of its name failed. When
// that succeeds, no crash loses the chunk.
func TestArchiveAfterFailedSync(t *testing.T) {
	disk, armed := vfs.NewCrashMem(), false
	d := backup.NewDir(failSyncs(disk, func(name string) bool {
		failed := armed && strings.Contains(name, "archive/0")
		armed = armed && !failed
		return failed
	}), "d")
	lock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	a := backup.NewArchive(d, "acc")
	put := func(name string) error { return a.Put(t.Context(), "0000/x/"+name, strings.NewReader(name)) }
	if err := put("1"); err != nil {
		t.Fatal(err)
	}
	armed = true
	if err := put("2"); err == nil {
		t.Error("the sync failed, and Put succeeded")
	}
	if err := put("2"); err != nil {
		t.Fatal(err)
	}
	for state := range disk.CrashStates(100) {
		if _, err := state.Stat("d/acc/archive/0000/x/2"); err != nil {
			t.Fatalf("the chunk is lost: %v", err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// readFunc is a reader by a function.
type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestConcurrentPutIfAbsent has a call that finds an object which another call has stored meanwhile
// and not made durable. When the first one says that the object exists, no crash loses it.
func TestConcurrentPutIfAbsent(t *testing.T) {
	disk, armed := vfs.NewCrashMem(), false
	d := backup.NewDir(failSyncs(disk, func(name string) bool { return armed && strings.HasSuffix(name, "/files") }), "d")
	lock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) error { return d.PutIfAbsent(t.Context(), name, strings.NewReader(text)) }
	if err := put("files/1", "first"); err != nil { // the directory is durable
		t.Fatal(err)
	}
	err = d.PutIfAbsent(t.Context(), "files/2", readFunc(func([]byte) (int, error) {
		armed = true
		if err := put("files/2", "other"); err == nil {
			t.Error("the sync failed, and PutIfAbsent succeeded")
		}
		armed = false
		return 0, io.EOF
	}))
	if !errors.Is(err, fs.ErrExist) {
		t.Fatalf("PutIfAbsent returns %v, want %v", err, fs.ErrExist)
	}
	for state := range disk.CrashStates(100) {
		if b, err := vfs.ReadFile(state, "d/files/2", 10); err != nil || string(b) != "other" {
			t.Fatalf("after a crash the object is %q, %v", b, err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeleteAfterFailedSync deletes an object after the sync of its removal failed. When a second
// Delete returns nil, or List does not return the object, no crash brings it back: Prune removes the
// files of a backup whose manifest it does not find.
func TestDeleteAfterFailedSync(t *testing.T) {
	for _, then := range []string{"Delete", "List"} {
		disk, armed := vfs.NewCrashMem(), false
		d := backup.NewDir(failSyncs(disk, func(string) bool { return armed }), "d")
		lock, err := d.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Put(t.Context(), "a/1", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		armed = true
		if err := d.Delete(t.Context(), "a/1"); !errors.Is(err, syscall.EIO) {
			t.Fatalf("the sync failed, and Delete returned %v", err)
		}
		armed = false
		if then == "Delete" {
			err = d.Delete(t.Context(), "a/1")
		} else {
			_, err = d.List(t.Context(), "a/")
		}
		if err != nil {
			t.Fatal(err)
		}
		for state := range disk.CrashStates(100) {
			if _, err := state.Stat("d/a/1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: a crash brings the object back: %v", then, err)
			}
		}
		if err := errors.Join(d.Delete(t.Context(), "missing/1"), lock.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestCreateFailsWithoutBackup fails the removal of a link to a file: Create returns the error,
// and there is no backup.
func TestCreateFailsWithoutBackup(t *testing.T) {
	e := newEnv(t)
	e.fill("a", 10)
	r := e.open()
	disk := errorfs.Wrap(e.disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "remove" && strings.HasSuffix(op.Name, ".sst") {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
	_, err := r.Create(t.Context(), backup.Source{Account: account, DB: e.db, FS: disk, Scratch: "data/.backup", Clock: time.Now}, nil)
	if !errors.Is(err, syscall.EIO) {
		t.Fatalf("Create returns %v, want EIO", err)
	}
	if list, err := r.List(t.Context(), account); err != nil || len(list) > 0 {
		t.Errorf("Create failed, and there are the backups %v; error %v", list, err)
	}
	e.mustCreate(r)
}

// TestCreateLinksNoDamage makes a backup of a database with a damaged sstable in a directory to which files are linked. Create must name
// the file, and there must be no backup.
func TestCreateLinksNoDamage(t *testing.T) {
	e := newEnv(t)
	e.fill("a", 50)
	d := backup.NewDir(e.disk, "d")
	lock, err := d.Lock()
	e.ok(err)
	defer lock.Close()
	r, err := backup.Init(t.Context(), d)
	e.ok(err)
	names, err := e.disk.List("data/" + account)
	e.ok(err)
	name := names[slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") })]
	patch := func() {
		b := make([]byte, 1)
		f, err := e.disk.Open("data/" + account + "/" + name)
		e.ok(err)
		_, err = f.ReadAt(b, 100)
		e.ok(errors.Join(err, f.Close()))
		e.ok(e.disk.Patch("data/"+account+"/"+name, 100, []byte{b[0] ^ 1}))
	}
	patch()
	var damage *store.CorruptError
	if _, err := e.create(r); !errors.Is(err, store.ErrCorrupt) || !errors.As(err, &damage) || damage.File != name {
		t.Errorf("Create: %v, want damage of %s", err, name)
	}
	if list, err := r.List(t.Context(), account); err != nil || len(list) > 0 {
		t.Errorf("Create failed, and there are the backups %v; error %v", list, err)
	}
	patch() // back
	if info := e.mustCreate(r); info.LinkedBytes == 0 {
		t.Error("nothing was linked")
	}
}

// TestCreateAfterFailedSync makes a backup after others failed because the names of files
// were not durable. When it succeeds, no crash damages it.
func TestCreateAfterFailedSync(t *testing.T) {
	disk, armed := vfs.NewCrashMem(), false
	x := failSyncs(disk, func(name string) bool { return armed && strings.HasSuffix(name, "/files") })
	e := &env{T: t}
	db, err := engine.Open("data/acc", engine.Options{FS: x, SegmentBytes: 64 << 10})
	e.ok(err)
	e.ok(db.CreateTable(t.Context(), "Table"))
	e.ok(db.Flush(t.Context()))
	d := backup.NewDir(x, "d")
	lock, err := d.Lock()
	e.ok(err)
	r, err := backup.Init(t.Context(), d)
	e.ok(err)
	create := func() error {
		_, err := r.Create(t.Context(), backup.Source{Account: "acc", DB: db, FS: x, Scratch: "data/.backup", Clock: time.Now}, nil)
		return err
	}
	armed = true
	for range 4 {
		if create() == nil {
			t.Error("the sync failed, and Create succeeded")
		}
	}
	armed = false
	e.ok(create())
	for state := range disk.CrashStates(300) {
		r, err := backup.Open(t.Context(), backup.NewDir(state, "d"))
		e.ok(err)
		if report, err := r.Verify(t.Context(), "", nil); err != nil || len(report.Findings) > 0 || report.Backups != 1 {
			t.Fatalf("after a crash: %+v, %v", report, err)
		}
	}
	e.ok(lock.Close())
	e.ok(db.Close())
}

// TestClockAhead makes a backup while the clock is ahead, and later another one, which Prune
// must keep.
func TestClockAhead(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 4)
	now := e.now
	e.now = now.AddDate(5, 0, 0)
	e.mustCreate(r)
	e.now = now
	e.fill("b", 4)
	info := e.mustCreate(r)
	_, err := r.Prune(t.Context(), account, 1)
	e.ok(err)
	if list, err := r.List(t.Context(), account); err != nil || len(list) != 1 || list[0].LastSequence != info.LastSequence {
		t.Errorf("Prune kept %+v, %v; want the backup with the sequence number %d", list, err, info.LastSequence)
	}
}

// TestLastEpoch restores beside an object whose name has the greatest epoch.
func TestLastEpoch(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	e.fill("a", 4)
	e.mustCreate(r)
	e.ok(e.target.Put(t.Context(), account+"/archive/ffffffffffffffff/x", bytes.NewReader(nil)))
	if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); err == nil {
		t.Error("Restore succeeded, and no epoch can follow")
	}
}

// TestSymbolicLinks puts links to other directories in the places of a backup directory and
// of an unfinished restore. No file there may be removed, and no backup overlooked.
func TestSymbolicLinks(t *testing.T) {
	e := newEnv(t)
	top := t.TempDir()
	file := filepath.Join(top, "other", "000009.sst")
	e.ok(os.Mkdir(filepath.Dir(file), 0o700))
	e.ok(os.WriteFile(file, []byte("x"), 0o600))
	link := func(name string) {
		t.Helper()
		name = filepath.Join(top, name)
		e.ok(os.MkdirAll(filepath.Dir(name), 0o700))
		if err := os.Symlink(filepath.Dir(file), name); err != nil {
			t.Skip(err)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s succeeded", what)
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%s removed a file elsewhere", what)
		}
	}
	dir := func(name string) *backup.Dir {
		return backup.NewDir(vfs.OS(), filepath.ToSlash(filepath.Join(top, name)))
	}
	link("temp/.tmp")
	_, err := dir("temp").Lock()
	refused("Lock", err)

	d := dir("files")
	lock, err := d.Lock()
	e.ok(err)
	r, err := backup.Init(t.Context(), d)
	e.ok(err)
	link("files/acct/files")
	_, err = r.Prune(t.Context(), "acct", 1)
	refused("Prune", err)
	_, err = r.Verify(t.Context(), "", nil)
	refused("Verify", err)
	e.ok(lock.Close())

	e.fill("a", 4)
	source := e.open()
	e.mustCreate(source)
	link("dest.restoring/" + account)
	_, err = source.Restore(t.Context(), vfs.OS(), filepath.ToSlash(filepath.Join(top, "dest")), backup.RestoreOptions{})
	refused("Restore", err)
}

// TestUntilAfterRestore restores a moment of a history that ended with a restore to an
// earlier backup.
func TestUntilAfterRestore(t *testing.T) {
	a := newArchived(t)
	a.put("a")
	first := a.backup()
	a.put("b")
	a.put("c")
	wanted := a.now
	a.now = a.now.Add(time.Hour)
	a.put("d")
	a.backup()
	a.ok(a.db.Close())
	a.now = a.now.Add(time.Hour)
	_, err := a.r.Restore(t.Context(), a.disk, "again", backup.RestoreOptions{ID: first.ID})
	a.ok(err)
	a.open("again")
	a.backup()
	a.put("x")
	if got := a.restored("wanted", wanted); got != "a b c" {
		t.Errorf("until %v: %q", wanted, got)
	}
	a.ok(a.db.Close())
}

// TestLastTimestamp makes backups beside writers. Each backup has all writes with a
// Timestamp up to its last one.
func TestLastTimestamp(t *testing.T) {
	e := newEnv(t)
	r := e.open()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := map[edm.Key]time.Time{}
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := edm.Key{Partition: string(rune('a' + w)), Row: strconv.Itoa(i)}
				results, err := e.db.Apply(t.Context(), "Table", store.InsertOrReplace(edm.Entity{Key: key}))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				written[key] = results[0].Timestamp.Time()
				mu.Unlock()
			}
		})
	}
	var infos []backup.Info
	for range 20 {
		infos = append(infos, e.mustCreate(r))
	}
	close(stop)
	wg.Wait()
	for i, info := range infos {
		dir := "r" + info.ID
		_, err := r.Restore(t.Context(), e.disk, dir, backup.RestoreOptions{ID: info.ID})
		e.ok(err)
		db, err := engine.Open(dir+"/"+account, engine.Options{FS: e.disk, ReadOnly: true})
		e.ok(err)
		for entity, err := range store.Entities(db.Query(t.Context(), "Table", store.Query{})) {
			e.ok(err)
			if entity.Timestamp.Time().After(info.LastTimestamp) {
				t.Errorf("backup %d has a write of %v, its last one is of %v", i, entity.Timestamp.Time(), info.LastTimestamp)
			}
		}
		for key, at := range written {
			if at.After(info.LastTimestamp) {
				continue
			}
			if _, err := db.Get(t.Context(), "Table", key); err != nil {
				t.Errorf("backup %d: %v of %v, the last one is of %v", i, err, at, info.LastTimestamp)
			}
		}
		e.ok(db.Close())
	}
}

// TestRestoreToMountPoint restores to a directory that cannot be removed, as a mount point is:
// Restore says so before it copies anything. A directory that does not exist is not removed.
func TestRestoreToMountPoint(t *testing.T) {
	e := newEnv(t)
	e.fill("a", 10)
	r := e.open()
	e.mustCreate(r)
	e.ok(e.disk.MkdirAll("mounted"))
	disk := errorfs.Wrap(e.disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "remove" && op.Name == "mounted" {
			return &errorfs.Fault{Err: syscall.EBUSY}
		}
		return nil
	})
	_, err := r.Restore(t.Context(), disk, "mounted", backup.RestoreOptions{})
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "name a directory that does not exist") {
		t.Errorf("Restore returns %v, want EBUSY and what to do", err)
	}
	if _, err := e.disk.Stat("mounted" + backup.Restoring); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the unfinished restore: %v, want that there is none", err)
	}
	disk.SetRule(func(op vfs.Op) *errorfs.Fault {
		if strings.HasPrefix(op.Name, "readonly") && op.Kind != "read" && op.Kind != "stat" && op.Kind != "list" {
			return &errorfs.Fault{Err: syscall.EROFS}
		}
		return nil
	})
	_, err = r.Restore(t.Context(), disk, "readonly/restored", backup.RestoreOptions{})
	if !errors.Is(err, syscall.EROFS) || strings.Contains(err.Error(), "name a directory that does not exist") {
		t.Errorf("Restore to a read-only file system returns %v, want EROFS without the next step for a mount point", err)
	}
}

// TestRestoreAfterFailedSync fails the sync of the name that the restored directory gets last. After
// the error the directory must not be there, and a second Restore must succeed.
func TestRestoreAfterFailedSync(t *testing.T) {
	e := newEnv(t)
	e.fill("a", 10)
	r := e.open()
	e.mustCreate(r)
	renamed := false
	disk := errorfs.Wrap(e.disk, func(op vfs.Op) *errorfs.Fault {
		renamed = renamed || op.Kind == "rename" && op.NewName == "restored"
		if renamed && op.Kind == "sync-dir" {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
	if _, err := r.Restore(t.Context(), disk, "restored", backup.RestoreOptions{}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync failed, and Restore returned %v", err)
	}
	if _, err := e.disk.Stat("restored"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the error, the directory is there: %v", err)
	}
	if _, err := r.Restore(t.Context(), e.disk, "restored", backup.RestoreOptions{}); err != nil {
		t.Errorf("the second Restore: %v", err)
	}
}
