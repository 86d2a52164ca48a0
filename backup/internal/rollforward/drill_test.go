package rollforward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
	"github.com/tablerock-db/tablerock/backup/internal/rollforward"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestDrill runs random writes, loads, drops, checkpoints and crashes with an archive whose
// calls fail, and then restores random moments and compares them with a model. The
// environment variable ROLLFORWARD_SEEDS sets how many seeds it runs, and ROLLFORWARD_SEED
// the only one.
func TestDrill(t *testing.T) {
	seeds, first := 4, uint64(time.Now().UnixNano())%1_000_000_000
	if testing.Short() {
		seeds = 1
	}
	if n, err := strconv.Atoi(os.Getenv("ROLLFORWARD_SEEDS")); err == nil {
		seeds = n
	}
	if seed, err := strconv.ParseUint(os.Getenv("ROLLFORWARD_SEED"), 10, 64); err == nil {
		seeds, first = 1, seed
	}
	var total drillCounts
	for i := range seeds {
		seed := first + uint64(i)
		d := newDrill(t, seed)
		if err := d.run(); err != nil {
			t.Fatalf("seed %d: %v\nROLLFORWARD_SEED=%d go test -run TestDrill ./backup/internal/rollforward\n%s",
				seed, err, seed, strings.Join(d.history[max(0, len(d.history)-40):], "\n"))
		}
		total.add(d.counts)
	}
	t.Logf("seeds %d to %d: %+v", first, first+uint64(seeds)-1, total)
}

type drillCounts struct{ Events, Loads, Backups, Kills, Closes, Failures, Restores int }

func (c *drillCounts) add(o drillCounts) {
	c.Events += o.Events
	c.Loads += o.Loads
	c.Backups += o.Backups
	c.Kills += o.Kills
	c.Closes += o.Closes
	c.Failures += o.Failures
	c.Restores += o.Restores
}

// drill is one run of TestDrill.
type drill struct {
	ctx     context.Context
	t       *testing.T
	r       *rand.Rand
	clock   clock
	disk    *vfs.Mem
	db      *engine.DB
	target  *backuptest.Target
	archive *drillArchive
	noSync  bool
	events  []event
	seq     uint64
	n       int64
	counts  drillCounts
	history []string
	backups []checkpoint
	created map[string]edm.Ticks // the tables
}

type checkpoint struct {
	dir string
	at  edm.Ticks // greatest Timestamp
	fs  *vfs.Mem  // a copy of the disk that has it
}

// drillArchive passes chunks on until its process is killed.
type drillArchive struct {
	engine.Archive
	killed bool
}

func (a *drillArchive) Put(ctx context.Context, name string, chunk io.Reader) error {
	if a.killed {
		return errors.New("the process is dead")
	}
	return a.Archive.Put(ctx, name, chunk)
}

var drillTables = []string{"One", "Two", "Three"}

func newDrill(t *testing.T, seed uint64) *drill {
	return &drill{
		ctx: t.Context(), t: t, r: rand.New(rand.NewPCG(seed, 7)), disk: vfs.NewCrashMem(),
		clock: clock{now: edm.TicksOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))}, target: backuptest.NewTarget(seed, 0.2),
		noSync: seed%4 == 3, created: map[string]edm.Ticks{},
	}
}

func (d *drill) run() error {
	if err := d.open(); err != nil {
		return err
	}
	defer func() { d.abandon() }()
	for range 150 {
		if err := d.step(); err != nil {
			return err
		}
	}
	d.target.SetFailures(0)
	if err := d.db.Close(); err != nil {
		return err
	}
	for range 12 {
		if err := d.restore(); err != nil {
			return err
		}
	}
	d.counts.Events = len(d.events)
	return nil
}

func (d *drill) note(format string, args ...any) {
	d.history = append(d.history, fmt.Sprintf("%v %d ", d.clock.ticks(), d.seq)+fmt.Sprintf(format, args...))
}

func (d *drill) open() (err error) {
	d.archive = &drillArchive{Archive: backup.NewArchive(d.target, "acct")}
	o := engine.Options{
		FS: d.disk, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 1 << 20, Archive: d.archive,
	}
	o.Testing.Manual, o.Testing.Clock, o.Testing.LoadBytes = true, &d.clock, 8<<10
	o.Testing.Random = rand.NewChaCha8([32]byte{byte(d.r.Uint32())})
	o.NoSync = d.noSync
	d.skipReserved()
	d.db, err = engine.Open("db", o)
	return err
}

// skipReserved moves the clock beyond the Timestamps that NoSync reserves. After a crash, or a
// checkpoint behind a load, Timestamps go on behind them.
func (d *drill) skipReserved() {
	if d.noSync {
		d.clock.move(int(time.Minute / 100))
	}
}

// abandon ends a database whose process was killed, or that is closed.
func (d *drill) abandon() {
	d.archive.killed = true
	ctx, cancel := context.WithCancel(d.ctx)
	cancel()
	_ = d.db.CloseContext(ctx)
}

// step does something. At random the process is killed at a point of it.
func (d *drill) step() error {
	d.clock.move(1000 + d.r.IntN(100_000))
	var killed *vfs.Mem
	before := d.seq
	if d.r.IntN(12) == 0 {
		after := d.r.IntN(40)
		modes := []string{"min", "max", "prefix", "sector"}
		o := vfs.CrashOptions{Mode: modes[d.r.IntN(len(modes))], Seed: d.r.Uint64()}
		d.disk.OnOp(func(op vfs.Op) {
			if after--; after < 0 && killed == nil {
				killed, d.archive.killed = d.disk.Crash(o), true
				d.note("killed before %v, disk %v", op, o)
			}
		})
	}
	err := d.random()
	d.disk.OnOp(nil)
	if killed == nil {
		if err != nil {
			return err
		}
		if d.r.IntN(4) > 0 { // some background work
			for range 1 + d.r.IntN(6) {
				if worked, err := d.db.Step(d.ctx); err != nil && !errors.Is(err, backuptest.ErrInjected) {
					return err
				} else if err != nil {
					d.counts.Failures++
				} else if !worked {
					break
				}
			}
		}
		return nil
	}
	d.counts.Kills++
	d.abandon()
	d.disk = killed
	if err := d.open(); err != nil {
		return fmt.Errorf("open after a kill: %w", err)
	}
	stats, err := d.db.Stats()
	if err != nil {
		return err
	}
	if stats.LastSequence < before && !d.noSync {
		return fmt.Errorf("%d writes are left of %d", stats.LastSequence, before)
	}
	return d.forget(stats.LastSequence)
}

// forget removes the events that a crash has taken back.
func (d *drill) forget(seq uint64) error {
	for len(d.events) > 0 && d.events[len(d.events)-1].seq > seq {
		d.events = d.events[:len(d.events)-1]
	}
	for len(d.backups) > 0 && d.backups[len(d.backups)-1].at > d.clock.ticks() {
		d.backups = d.backups[:len(d.backups)-1]
	}
	d.seq = 0
	if n := len(d.events); n > 0 {
		d.seq = d.events[n-1].seq
	}
	if d.seq != seq {
		return fmt.Errorf("the database ends at sequence %d, within an event that follows %d", seq, d.seq)
	}
	d.created = map[string]edm.Ticks{}
	tables, err := d.db.Tables(d.ctx, "", 0)
	for _, info := range tables {
		d.created[info.Name] = info.Created
	}
	return err
}

// random does a random operation.
func (d *drill) random() error {
	table := drillTables[d.r.IntN(len(drillTables))]
	_, exists := d.created[table]
	switch k := d.r.IntN(100); {
	case !exists:
		return d.createTable(table)
	case k < 3:
		return d.dropTable(table)
	case k < 8:
		return d.setMeta(table)
	case k < 16:
		return d.load(table)
	case k < 20:
		return d.reopen()
	case k < 26:
		return d.backup()
	case k < 30:
		d.note("flush")
		return d.db.Flush(d.ctx)
	case k < 34:
		d.note("compact")
		return d.db.Compact(d.ctx)
	default:
		return d.apply(table)
	}
}

// add adds an event of count entries that begins at the present.
func (d *drill) add(count int, what string, effects ...effect) error {
	if d.seq += uint64(count); d.seq != d.last() {
		return fmt.Errorf("%s: the last sequence is %d, the model has %d", what, d.last(), d.seq)
	}
	d.events = append(d.events, event{d.seq, d.clock.ticks() + edm.Ticks(count-1), what, effects})
	d.note("%s", what)
	return nil
}

func (d *drill) last() uint64 {
	s, err := d.db.Stats()
	if err != nil {
		d.t.Fatal(err)
	}
	return s.LastSequence
}

func (d *drill) createTable(table string) error {
	if err := d.db.CreateTable(d.ctx, table); err != nil {
		return err
	}
	d.created[table] = d.clock.ticks()
	return d.add(int(d.last()-d.seq), "create "+table, effect{tableKey(table), fmt.Sprint(d.clock.ticks())})
}

func (d *drill) dropTable(table string) error {
	if err := d.db.DeleteTable(d.ctx, table); err != nil {
		return err
	}
	delete(d.created, table)
	return d.add(int(d.last()-d.seq), "drop "+table, effect{key: tableKey(table)}, effect{key: metaKey(table)}, effect{key: rowsKey(table)})
}

func (d *drill) setMeta(table string) error {
	meta := fmt.Sprint("meta ", d.r.IntN(1000))
	if err := d.db.SetTableMeta(d.ctx, table, []byte(meta)); err != nil {
		return err
	}
	return d.add(int(d.last()-d.seq), "meta "+table, effect{metaKey(table), meta})
}

func (d *drill) entity(partition string) edm.Entity {
	d.n++
	return edm.Entity{
		Key: edm.Key{Partition: partition, Row: fmt.Sprintf("%03d", d.r.IntN(200))},
		Properties: edm.Properties{
			{Name: "N", Value: edm.Int64(d.n)},
			{Name: "S", Value: edm.String(strings.Repeat("s", d.r.IntN(600)))},
		},
	}
}

func (d *drill) apply(table string) error {
	partition := fmt.Sprint("p", d.r.IntN(4))
	var ops []store.Op
	seen := map[edm.Key]bool{}
	for range 1 + d.r.IntN(30) {
		e := d.entity(partition)
		if seen[e.Key] {
			continue
		}
		seen[e.Key] = true
		ops = append(ops, store.InsertOrReplace(e))
	}
	results, err := d.db.Apply(d.ctx, table, ops...)
	if err != nil {
		return err
	}
	var effects []effect
	for i, result := range results {
		e := ops[i].Entity
		e.Timestamp = result.Timestamp
		effects = append(effects, effect{rowKey(table, e.Key), rowLine(e)})
	}
	if err := d.add(len(ops), fmt.Sprintf("apply %d to %s/%s", len(ops), table, partition), effects...); err != nil {
		return err
	}
	if d.r.IntN(4) > 0 {
		return nil
	}
	d.clock.move(1000)
	key := ops[0].Entity.Key
	if _, err := d.db.Apply(d.ctx, table, store.Delete(key, store.Any)); err != nil {
		return err
	}
	return d.add(1, "delete", effect{key: rowKey(table, key)})
}

func (d *drill) load(table string) error {
	var list []edm.Entity
	for range 1 + d.r.IntN(80) {
		list = append(list, d.entity(fmt.Sprint("p", d.r.IntN(4))))
	}
	var entities iter.Seq2[edm.Entity, error] = func(yield func(edm.Entity, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
	done := 0
	_, err := d.db.Load(d.ctx, table, entities, engine.LoadOptions{Installed: func(r engine.LoadResult) {
		d.seq++
		d.counts.Loads++
		var effects []effect
		for _, e := range list[done:r.Entities] {
			e.Timestamp = r.Timestamp
			effects = append(effects, effect{rowKey(table, e.Key), rowLine(e)})
		}
		done = int(r.Entities)
		d.events = append(d.events, event{d.seq, r.Timestamp, "install", effects})
		d.note("install up to entity %d in %s", done, table)
		d.clock.move(1000)
	}})
	if err == nil && d.last() != d.seq {
		err = fmt.Errorf("load: the last sequence is %d, the model has %d", d.last(), d.seq)
	}
	return err
}

// reopen closes the database, with time for the archive or without, and opens it again.
func (d *drill) reopen() error {
	d.counts.Closes++
	ctx, cancel := context.WithCancel(d.ctx)
	if d.r.IntN(2) == 0 {
		cancel()
	}
	err := d.db.CloseContext(ctx)
	cancel()
	d.note("close and open")
	if killed := d.archive.killed; killed {
		return err // step opens the disk of the crash
	}
	return errors.Join(err, d.open())
}

func (d *drill) backup() error {
	dir := fmt.Sprint("backup", d.counts.Backups)
	d.counts.Backups++
	if err := d.db.Checkpoint(d.ctx, dir); err != nil {
		return err
	}
	d.skipReserved()
	if d.archive.killed {
		return nil
	}
	d.note("backup %s", dir)
	d.backups = append(d.backups, checkpoint{dir, d.events[len(d.events)-1].to, d.disk.Clone()})
	return nil
}

// restore restores a random moment and compares it with the model.
func (d *drill) restore() error {
	if len(d.backups) == 0 {
		return nil
	}
	first, last := d.backups[0].at, d.events[len(d.events)-1].to
	until := first + edm.Ticks(d.r.Int64N(int64(last-first)+1))
	if d.r.IntN(3) > 0 { // at a boundary of an event
		until = max(first, d.events[d.r.IntN(len(d.events))].to-edm.Ticks(d.r.IntN(2)))
	}
	base := d.backups[0]
	for _, b := range d.backups {
		if b.at <= until && d.r.IntN(3) > 0 {
			base = b
		}
	}
	d.counts.Restores++
	if err := d.restoreAt(base, until); err != nil {
		return fmt.Errorf("restore %s until %v: %w", base.dir, until, err)
	}
	return nil
}

func (d *drill) restoreAt(base checkpoint, until edm.Ticks) error {
	disk := base.fs.Clone()
	objects, err := d.target.List(d.ctx, "acct/archive/")
	if err != nil {
		return err
	}
	o := rollforward.Options{
		FS: disk, Dir: base.dir, Base: base.at, Until: until,
		Open: func(ctx context.Context, name string) (io.ReadCloser, error) {
			return d.target.Get(ctx, path.Join("acct/archive", name))
		},
	}
	for _, object := range objects {
		o.Names = append(o.Names, strings.TrimPrefix(object.Name, "acct/archive/"))
	}
	last, err := rollforward.Apply(d.ctx, o)
	if err != nil {
		return err
	}
	db, err := engine.Open(base.dir, engine.Options{FS: disk, SegmentBytes: 64 << 10})
	if err != nil {
		return err
	}
	defer db.Close()
	report, err := db.Verify(d.ctx)
	if err != nil || len(report.Findings) > 0 {
		return fmt.Errorf("verify: %v %w", report.Findings, err)
	}
	got, err := dump(d.ctx, db)
	if err != nil {
		return err
	}
	want, seq := contents(d.events, until)
	if what := difference(got, want); what != "" {
		return errors.New(what)
	}
	stats, err := db.Stats()
	if err == nil && (stats.LastSequence != seq || last != seq) {
		err = fmt.Errorf("the last sequence is %d, Apply returned %d, want %d", stats.LastSequence, last, seq)
	}
	return err
}
