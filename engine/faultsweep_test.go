package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// oneFault is a way in which one operation of a file system fails.
type oneFault struct {
	name  string
	kinds string // of operations, with spaces around each; empty for all
	fault errorfs.Fault
}

var oneFaults = []oneFault{
	{"EIO", "", errorfs.Fault{Err: syscall.EIO}},
	{"ENOSPC", " create write sync sync-dir rename link mkdir preallocate ", errorfs.Fault{Err: syscall.ENOSPC}},
	{"lost answer", " create write sync sync-dir rename link mkdir preallocate remove ", errorfs.Fault{Err: syscall.EIO, Applied: true}},
	{"lost sync", " sync ", errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncForgets}},
	{"short write", " write ", errorfs.Fault{Err: syscall.ENOSPC, Short: 512}},
}

// sweep is a database of which one operation of the file system fails, and the entities that it
// may have.
type sweep struct {
	*testing.T
	disk       *vfs.Mem
	fs         *errorfs.FS
	handles    *counting
	set        func(*engine.Options)
	background bool
	o          engine.Options
	db         *engine.DB
	mu         sync.Mutex // held to change the rest in several goroutines
	n          int64      // the last value of N
	// excused is what may be left until the next Open: an sstable whose creation has lost its
	// answer, an archived load, and flushed segments that could not be removed or wait for their
	// next use.
	excused struct {
		name     string
		segments int
	}
	// rows has the values of N that the entity of a key can have, 0 if there can be none.
	rows   map[string][]int64
	failed string // the operation that failed
	lost   bool   // Close said that writes are not durable
	// garbage says that a power cut can have left a segment whose sectors have bytes of other
	// files. Nobody can tell whose it is, so it stays.
	garbage bool
}

// sweepCase is an operation whose every operation of the file system fails once.
type sweepCase struct {
	name   string
	set    func(*engine.Options)
	before func(s *sweep) // on the disk that all sweeps begin with, which is as a killed process left it
	opened func(s *sweep) // after Open
	closed bool           // do opens the database, and may close it before
	do     func(s *sweep) error
	after  func(s *sweep) // once do has succeeded
	every  uint64         // of how many operations one fails; 0 is 1
	// background says that a goroutine does the background work.
	background bool
}

// sweepFiller are bytes that cannot be compressed, which takes less time.
var sweepFiller = func() []byte {
	b := make([]byte, 32<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

// sweepKey returns the key of an entity in rows.
func sweepKey(k edm.Key) string { return k.Partition + "/" + k.Row }

// entity returns the next entity of a key.
func (s *sweep) entity(partition, row string, size int) edm.Entity {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	e := entity(partition, row, s.n, 0)
	e.Properties[1].Value = edm.Binary(sweepFiller[:size])
	return e
}

// note notes that an entity was written with err.
func (s *sweep) note(e *edm.Entity, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sweepKey(e.Key)
	v, _ := e.Properties.Get("N").Int64()
	switch {
	case err == nil:
		s.rows[key] = []int64{v}
	case errors.Is(err, store.ErrOutcomeUnknown):
		if len(s.rows[key]) == 0 {
			s.rows[key] = []int64{0}
		}
		s.rows[key] = append(s.rows[key], v)
	}
}

// write writes an entity for each row.
func (s *sweep) write(partition string, from, to, size int) error {
	for i := from; i < to; i++ {
		e := s.entity(partition, fmt.Sprintf("%06d", i), size)
		_, err := s.db.Apply(s.Context(), table, store.InsertOrReplace(e))
		s.note(&e, err)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sweep) mustWrite(partition string, from, to, size int) {
	s.Helper()
	check(s.T, "write", s.write(partition, from, to, size))
}

// load loads entities, and notes those that were installed.
func (s *sweep) load(entities []edm.Entity) error {
	r, err := s.db.Load(s.Context(), table, sequence(entities), engine.LoadOptions{})
	for i := range entities {
		switch {
		case int64(i) < r.Entities:
			s.note(&entities[i], nil)
		case errors.Is(err, store.ErrOutcomeUnknown):
			s.note(&entities[i], err)
		}
	}
	return err
}

// check compares the entities of the table with rows.
func (s *sweep) check(what string, q querier) {
	s.Helper()
	found := map[string]int64{}
	for e, err := range store.Entities(q.Query(s.Context(), table, store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) && len(s.rows) == 0 {
			break
		}
		check(s.T, what+": Query", err)
		key := sweepKey(e.Key)
		if found[key] != 0 {
			s.Fatalf("%s: %s is found twice", what, key)
		}
		found[key], _ = e.Properties.Get("N").Int64()
		if !slices.Contains(s.rows[key], found[key]) {
			s.Fatalf("%s: %s has N %d, want one of %d", what, key, found[key], s.rows[key])
		}
	}
	for key, ns := range s.rows {
		if found[key] == 0 && !slices.Contains(ns, 0) {
			s.Fatalf("%s: %s is missing, want N of %d", what, key, ns)
		}
	}
}

// options returns those of the database on a disk.
func (s *sweep) options(disk vfs.FS) engine.Options {
	o := small(disk)
	o.Testing.Manual = !s.background
	if s.set != nil {
		s.set(&o)
	}
	return o
}

// checkOpen checks the database if it is open. Otherwise nothing must be open.
func (s *sweep) checkOpen(what string) {
	s.Helper()
	if s.db != nil {
		s.check(what, s.db)
	} else if left := s.handles.left(); len(left) > 0 {
		s.Fatalf("%s: %v is open", what, left)
	}
}

// certain checks a database that was opened, whose entities are now certain.
func (s *sweep) certain(what string, db *engine.DB) {
	s.Helper()
	if !s.lost {
		s.check(what, db)
	}
	clear(s.rows)
	for e, err := range store.Entities(db.Query(s.Context(), table, store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) {
			break
		}
		check(s.T, "Query", err)
		s.note(&e, nil)
	}
}

// checkFiles verifies the database and compares the files in the directory with the manifest.
func (s *sweep) checkFiles(what string, db *engine.DB, disk *vfs.Mem) {
	s.Helper()
	r, err := db.Verify(s.Context())
	check(s.T, what+": Verify", err)
	if s.garbage {
		r.Unknown = slices.DeleteFunc(r.Unknown, func(name string) bool { return strings.HasSuffix(name, ".wal") })
	}
	if len(r.Findings)+len(r.Unknown) > 0 {
		s.Fatalf("%s: findings %v, unknown files %v", what, r.Findings, r.Unknown)
	}
	m, err := manifest.Read(disk, "db")
	check(s.T, what+": manifest", err)
	listed := map[string]bool{filename.Lock: true, filename.Manifest: true}
	for _, f := range m.Files {
		listed[filename.Make(filename.SSTable, f.Number)] = true
	}
	stats, err := db.Stats()
	check(s.T, what+": Stats", err)
	for _, mem := range stats.Memtables {
		listed[filename.Make(filename.WAL, uint64(mem.Segment))] = true
	}
	if stats.DiskFull {
		s.Fatalf("%s: the disk is full", what)
	}
	segments := 0
	for _, name := range files(s.T, disk, "db", "") {
		switch kind, _ := filename.Parse(name); {
		case listed[name] || kind == filename.Reserve || name == s.excused.name:
		case kind == filename.WAL && (s.garbage || segments < s.excused.segments):
			segments++
		default:
			s.Fatalf("%s: %s is left of %v, the manifest lists %v", what, name, files(s.T, disk, "db", ""), listed)
		}
	}
}

// reopen opens the database on a disk and checks it.
func (s *sweep) reopen(what string, disk *vfs.Mem) {
	s.Helper()
	excused := s.excused
	s.excused.name, s.excused.segments = "", 0
	defer func() { s.excused = excused }()
	o := s.options(disk)
	o.Testing.Manual = true
	db, err := engine.Open("db", o)
	check(s.T, what+": Open", err)
	s.certain(what, db)
	before := s.db
	s.db = db
	if err := db.CreateTable(s.Context(), table); !errors.Is(err, store.ErrTableExists) {
		check(s.T, what+": CreateTable", err)
	}
	check(s.T, what, s.write("y", 0, 1, 10))
	s.db = before
	check(s.T, what+": Flush", db.Flush(s.Context()))
	check(s.T, what+": Close", db.Close())
	db, err = engine.Open("db", o) // removes what was not stale at the Open before
	check(s.T, what+": Open", err)
	s.check(what, db)
	s.checkFiles(what, db, disk)
	check(s.T, what+": Close", db.Close())
}

// crash checks what a power cut leaves now.
func (s *sweep) crash(what, mode string) {
	s.Helper()
	rows := s.rows
	s.garbage = mode == "subset"
	s.rows = map[string][]int64{}
	for k, v := range rows {
		s.rows[k] = slices.Clone(v)
	}
	s.reopen(what+", power cut "+mode, s.disk.Crash(vfs.CrashOptions{Mode: mode, Seed: 1}))
	s.rows, s.garbage = rows, false
}

// run sweeps over the operations of c.do.
func (c sweepCase) run(t *testing.T) {
	if !c.background {
		race.SkipOneGoroutine(t) // but for one that finishes files of a Load: see TestLoadFaults
	}
	base := &sweep{T: t, disk: vfs.NewCrashMem(), set: c.set, rows: map[string][]int64{}}
	base.db = mustCreate(t, base.options(base.disk))
	if c.before != nil {
		c.before(base)
	}
	killed := base.disk.Clone()
	check(t, "Close", base.db.Close())
	for i, f := range oneFaults {
		every := max(1, c.every) * uint64(stride(15))
		for n := 1 + uint64(i)*every/uint64(len(oneFaults)); ; n += every {
			s := &sweep{T: t, disk: killed.Clone(), n: base.n, set: c.set, background: c.background, rows: map[string][]int64{}}
			for k, v := range base.rows {
				s.rows[k] = slices.Clone(v)
			}
			found := false
			if c.background {
				synctest.Test(t, func(t *testing.T) {
					s.T = t
					found = s.one(c, f, n)
				})
			} else {
				found = s.one(c, f, n)
			}
			if !found {
				t.Logf("%s: %d operations", f.name, n-1)
				break
			}
		}
	}
}

// arm makes the n-th operation fail from now on, and notes it in failed.
func (s *sweep) arm(f oneFault, n uint64) {
	s.excused.segments = 1
	nth := errorfs.FailNth(n, func(op vfs.Op) bool { return f.kinds == "" || strings.Contains(f.kinds, " "+op.Kind+" ") }, f.fault, false)
	s.fs.SetRule(func(op vfs.Op) *errorfs.Fault {
		x := nth(op)
		if x != nil {
			s.failed = fmt.Sprintf("%s of %v", f.name, op)
			name, _, _ := strings.Cut(strings.TrimPrefix(op.Name, "db/"), "/")
			switch kind, _ := filename.Parse(name); {
			case kind == filename.WAL:
				s.excused.segments++
			case kind == filename.Load || op.Kind == "create":
				s.excused.name = name
			}
		}
		return x
	})
}

// one fails the n-th operation and reports whether there was one.
func (s *sweep) one(c sweepCase, f oneFault, n uint64) bool {
	s.Helper()
	s.fs = errorfs.Wrap(s.disk, nil)
	s.handles = newCounting(s.fs)
	s.o = s.options(s.handles)
	if !c.closed || c.opened != nil {
		s.db = mustOpen(s.T, "db", s.o)
	}
	if c.opened != nil {
		c.opened(s)
	}
	s.arm(f, n)
	err := c.do(s)
	if s.background {
		time.Sleep(3 * time.Second) // until the background work has tried again
		synctest.Wait()
	}
	s.fs.SetRule(nil)
	if s.failed == "" {
		check(s.T, "without a fault", err)
	}
	first := err
	s.checkOpen(s.failed)
	for try := 0; try < 3 && err != nil && (s.db == nil || s.db.Failure() == nil); try++ {
		if s.db != nil {
			drain(s.T, s.db) // fills the reserve
		}
		err = c.do(s)
		s.checkOpen(s.failed)
	}
	if s.db == nil {
		s.Fatalf("%s, then %v, %v: not open", s.failed, first, err)
	}
	what := fmt.Sprintf("%s, then %v, %v, failure %v", s.failed, first, err, s.db.Failure())
	if s.db.Failure() == nil {
		check(s.T, what, err)
		drain(s.T, s.db)
		s.mustWrite("z", 0, 1, 100)
		check(s.T, what+": Flush", s.db.Flush(s.Context()))
		drain(s.T, s.db)
		s.checkFiles(what, s.db, s.disk)
		if c.after != nil {
			c.after(s)
		}
	} else {
		// If only the manifest is in doubt, the log accepts some more.
		werr := s.write("z", 0, 3, 20<<10)
		if !errors.Is(s.db.Failure(), store.ErrReadOnly) || werr != nil && !errors.Is(werr, store.ErrReadOnly) {
			s.Fatalf("%s: write: %v", what, werr)
		}
	}
	s.check(what, s.db)
	failure, noSync := s.db.Failure(), s.o.NoSync
	if !noSync {
		s.crash(what, []string{"min", "max", "subset", "dirs"}[n%4])
	}
	if err := s.db.Close(); err != nil && failure == nil {
		s.Fatalf("%s: Close: %v", what, err)
	} else if s.lost = noSync && err != nil; s.lost {
		s.reopen(what+", opened", s.disk)
		return true
	}
	if left := s.handles.left(); len(left) > 0 {
		s.Fatalf("%s: open after Close: %v", what, left)
	}
	if n%3 == 0 {
		s.crash(what+", after Close", "min")
	}
	s.reopen(what+", opened", s.disk)
	return s.failed != ""
}
