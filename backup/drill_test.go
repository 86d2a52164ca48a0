package backup_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

var (
	drillSeed  = flag.Uint64("drill.seed", 0, "seed of the drill; 0 takes one from the clock")
	drillSteps = flag.Int("drill.steps", 60, "steps of the drill")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const account = "account"

// drill works on a database, its backups and their restores on one disk, and knows what
// each backup must have.
type drill struct {
	t       *testing.T
	random  *rand.Rand
	disk    *vfs.Mem
	links   bool
	db      *engine.DB
	oracle  map[string][]string // dumps, by id of the backup
	removed map[string]bool     // ids of backups that Prune may have removed
	keys    int
	counts  map[string]int // of what happened
}

func (d *drill) ok(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// fs returns the file system, with or without hard links.
func (d *drill) fs() vfs.FS {
	if d.links {
		return d.disk
	}
	return noLinks(d.disk)
}

func (d *drill) options() engine.Options {
	return engine.Options{
		FS: d.fs(), MemoryBytes: 1 << 20, SegmentBytes: 64 << 10, FileBytes: 64 << 10, ReserveBytes: -1,
		Testing: engine.TestHooks{Manual: true, LoadBytes: 32 << 10},
	}
}

func (d *drill) open() {
	var err error
	d.db, err = engine.Open("data/"+account, d.options())
	d.ok(err)
}

// repository opens the backup directory for writing. The function ends that.
func (d *drill) repository(ctx context.Context) (*backup.Repository, func(), error) {
	target := backup.NewDir(d.fs(), "backups")
	lock, err := target.Lock()
	if err != nil {
		return nil, nil, err
	}
	r, err := backup.Init(ctx, target)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return r, func() { d.ok(lock.Close()) }, nil
}

// dump returns every entity of every table, with Timestamps.
func dump(t *testing.T, db *engine.DB) []string {
	t.Helper()
	tables, err := db.Tables(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, info := range tables {
		lines = append(lines, fmt.Sprint("table ", info.Name, info.Created))
		for e, err := range store.Entities(db.Query(t.Context(), info.Name, store.Query{})) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprint(info.Name, e))
		}
	}
	return lines
}

func (d *drill) entity() edm.Entity {
	d.keys++
	key := edm.Key{Partition: fmt.Sprint("p", d.random.IntN(4)), Row: fmt.Sprint(d.random.IntN(300))}
	return edm.Entity{Key: key, Properties: edm.Properties{
		{Name: "N", Value: edm.Int32(int32(d.keys))}, {Name: "S", Value: edm.String(strings.Repeat("x", d.random.IntN(400)))},
	}}
}

// write changes the database in a random way.
func (d *drill) write() {
	ctx := d.t.Context()
	table := fmt.Sprint("Table", d.random.IntN(3))
	if err := d.db.CreateTable(ctx, table); err != nil && !errors.Is(err, store.ErrTableExists) {
		d.t.Fatal(err)
	}
	switch n := d.random.IntN(20); {
	case n == 0:
		d.ok(d.db.DeleteTable(ctx, table))
	case n == 1:
		d.ok(d.db.Flush(ctx))
	case n == 2:
		d.ok(d.db.Compact(ctx))
	case n == 3:
		var entities iter.Seq2[edm.Entity, error] = func(yield func(edm.Entity, error) bool) {
			for range 100 {
				if !yield(d.entity(), nil) {
					return
				}
			}
		}
		_, err := d.db.Load(ctx, table, entities, engine.LoadOptions{})
		d.ok(err)
	default:
		for range d.random.IntN(60) {
			e := d.entity()
			op := store.InsertOrReplace(e)
			if d.random.IntN(5) == 0 {
				op = store.Delete(e.Key, store.Any)
			}
			if _, err := d.db.Apply(ctx, table, op); err != nil && !errors.Is(err, store.ErrEntityNotFound) {
				d.t.Fatal(err)
			}
		}
	}
}

// trouble is what happens to a call: after some of its operations the machine or the
// process ends, the disk is full, or ctx ends. A power cut can also follow the call. It reports
// whether the call succeeded before.
func (d *drill) trouble(call func(ctx context.Context) error) (finished bool) {
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	kind := []string{"none", "power cut", "kill", "full disk", "cancel"}[d.random.IntN(5)]
	var after *vfs.Mem
	at := 1 + d.random.IntN(40)
	if d.random.IntN(3) == 0 {
		at += d.random.IntN(400)
	}
	mode := []string{"min", "max", "prefix", "subset", "sector", "dirs"}[d.random.IntN(6)]
	seed := d.random.Uint64()
	d.disk.OnOp(func(vfs.Op) {
		if at--; at != 0 {
			return
		}
		switch kind {
		case "power cut":
			after = d.disk.Crash(vfs.CrashOptions{Mode: mode, Seed: seed})
		case "kill":
			after = d.disk.Clone()
		case "cancel":
			cancel()
		}
	})
	if kind == "full disk" {
		d.disk.SetCapacity(d.disk.Used() + int64(d.random.IntN(40<<10)) + 1)
	}
	err := call(ctx)
	d.disk.OnOp(nil)
	d.disk.SetCapacity(0)
	expected := err == nil || kind == "full disk" && errors.Is(err, syscall.ENOSPC) || kind == "cancel" && errors.Is(err, context.Canceled)
	if !expected {
		d.t.Fatalf("%s: %v", kind, err)
	}
	finished = err == nil && after == nil
	if finished && kind == "power cut" {
		after = d.disk.Crash(vfs.CrashOptions{Mode: mode, Seed: seed})
	}
	if err != nil || after != nil {
		d.counts[kind]++
	}
	if after != nil {
		d.ok(d.db.Close())
		d.disk = after
		d.open()
	}
	return finished
}

// create makes a backup, in trouble or not.
func (d *drill) create() {
	want := dump(d.t, d.db)
	known := d.list()
	finished := d.trouble(func(ctx context.Context) error {
		r, end, err := d.repository(ctx)
		if err != nil {
			return err
		}
		defer end()
		_, err = r.Create(ctx, backup.Source{Account: account, DB: d.db, FS: d.fs(), Scratch: "data/.backup", Clock: time.Now}, nil)
		return err
	})
	ids := d.list()
	if finished && len(ids) <= len(known) {
		d.t.Fatal("a backup that was made is gone")
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			d.oracle[id] = want
			d.counts["backups"]++
		}
	}
	if got := dump(d.t, d.db); !slices.Equal(got, want) {
		d.t.Fatal("a backup changed the database")
	}
}

// list returns the ids of the backups.
func (d *drill) list() (ids []string) {
	r, err := backup.Open(d.t.Context(), backup.NewDir(d.fs(), "backups"))
	if errors.Is(err, backup.ErrNotBackup) {
		return nil
	}
	d.ok(err)
	list, err := r.List(d.t.Context(), account)
	d.ok(err)
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	return ids
}

// prune removes old backups, in trouble or not.
func (d *drill) prune() {
	known := d.list()
	keep := 1 + d.random.IntN(4)
	for _, id := range known[:max(0, len(known)-keep)] {
		d.removed[id] = true
	}
	d.trouble(func(ctx context.Context) error {
		r, end, err := d.repository(ctx)
		if err != nil {
			return err
		}
		defer end()
		_, err = r.Prune(ctx, account, keep)
		return err
	})
}

// check verifies all backups, and restores one, in trouble and then without.
func (d *drill) check() {
	ids := d.list()
	for id := range d.oracle {
		if !slices.Contains(ids, id) && !d.removed[id] {
			d.t.Fatalf("backup %s is gone", id)
		}
	}
	if len(ids) == 0 {
		return
	}
	open := func() *backup.Repository {
		r, err := backup.Open(d.t.Context(), backup.NewDir(d.fs(), "backups"))
		d.ok(err)
		return r
	}
	if report, err := open().Verify(d.t.Context(), account, nil); err != nil || len(report.Findings) > 0 {
		d.t.Fatalf("Verify: %+v, %v", report, err)
	}
	id := ids[d.random.IntN(len(ids))]
	o := backup.RestoreOptions{Account: account, ID: id}
	finished := d.trouble(func(ctx context.Context) error {
		_, err := open().Restore(ctx, d.fs(), "restored/data", o)
		return err
	})
	// A restore that did not finish goes on. If it did, the data is there.
	if names, err := d.disk.List("restored/data"); !finished && (err != nil || len(names) == 0) {
		_, err := open().Restore(d.t.Context(), d.fs(), "restored/data", o)
		d.ok(err)
		// What a killed process wrote and did not sync is part of it.
		after := d.disk.Crash(vfs.CrashOptions{Mode: "min"})
		d.ok(d.db.Close())
		d.disk = after
		d.open()
	}
	if _, err := open().Restore(d.t.Context(), d.fs(), "restored/data", o); err == nil {
		d.t.Fatal("Restore replaced data")
	}
	options := d.options()
	db, err := engine.Open("restored/data/"+account, options)
	d.ok(err)
	if got, want := dump(d.t, db), d.oracle[id]; !slices.Equal(got, want) {
		d.t.Fatalf("backup %s restores to %d lines, want %d\n got %.300q\nwant %.300q", id, len(got), len(want), got, want)
	}
	stats, err := db.Stats()
	d.ok(err)
	if stats.Epoch == 0 {
		d.t.Error("the restored database has epoch 0")
	}
	d.ok(db.Close())
	d.counts["restores"]++
	d.removeAll("restored")
}

func (d *drill) removeAll(dir string) {
	names, err := d.disk.List(dir)
	d.ok(err)
	for _, name := range names {
		if info, err := d.disk.Stat(dir + "/" + name); err == nil && info.Dir {
			d.removeAll(dir + "/" + name)
			continue
		}
		d.ok(d.disk.Remove(dir + "/" + name))
	}
	d.ok(d.disk.Remove(dir))
	d.ok(d.disk.SyncDir("/"))
}

// TestDrill makes, removes and restores backups of a changing database while the machine
// loses power, the process is killed, the disk is full and calls are cancelled. Each backup
// that is listed is whole, and restores to what the database had.
func TestDrill(t *testing.T) {
	race.SkipOneGoroutine(t)
	seed := *drillSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat by: go test ./backup -run TestDrill -drill.seed %d -drill.steps %d", seed, *drillSteps)
	d := &drill{
		t: t, random: rand.New(rand.NewPCG(seed, 2)), disk: vfs.NewCrashMem(),
		oracle: make(map[string][]string), removed: make(map[string]bool), counts: make(map[string]int),
	}
	d.open()
	for range *drillSteps {
		d.links = d.random.IntN(2) == 0
		// The database keeps the file system that it was opened with.
		d.ok(d.db.Close())
		d.open()
		for range d.random.IntN(4) {
			d.write()
		}
		switch n := d.random.IntN(10); {
		case n < 5:
			d.create()
		case n < 9:
			d.check()
		default:
			d.prune()
		}
	}
	d.links = true
	d.check()
	d.ok(d.db.Close())
	t.Logf("happened: %v", d.counts)
	if *drillSteps >= 60 && (d.counts["backups"] == 0 || d.counts["restores"] == 0) {
		t.Error("too little happened")
	}
}
