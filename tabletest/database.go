package tabletest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// smallestSegment is the minimum, since most databases of tests are small. It also limits
// what the log of a snapshot has, which Reset replays.
const smallestSegment = 64 << 10

// cacheBytes is small, since all files are in memory.
const cacheBytes = 4 << 20

// database is a Store in memory that can return to an earlier state. Its files are
// those of a database of package engine, and a snapshot is a copy of the file system, which
// shares the contents of the files until they are written.
type database struct {
	t          testing.TB
	name       string
	options    engine.Options // without FS
	clock      *clock
	current    atomic.Pointer[opened]
	background sync.WaitGroup // for the ends of databases that were replaced, and of flushed
}

// opened is a database and its file system.
type opened struct {
	*engine.DB
	fs *vfs.Mem
}

// clock is the clock of the Timestamps. It does not go back to a Timestamp that was
// issued, also if the database does.
type clock struct {
	now  func() time.Time
	at   atomic.Int64 // edm.Ticks, the time of the last call of read
	last atomic.Int64 // edm.Ticks
}

// read reads the time for a write, in the goroutine of the write. The database asks for the time
// in the background too, while a test may change what now returns.
func (c *clock) read() error {
	now := c.now()
	c.at.Store(int64(edm.TicksOf(now)))
	if edm.TicksOf(now) > edm.MaxTicks {
		return fmt.Errorf("the clock of WithTimestamps is at %s, and Timestamps end with the year 9999: set it to an earlier time", now.Format(time.RFC3339))
	}
	return nil
}

// Now returns the time.
func (c *clock) Now() time.Time {
	return max(edm.Ticks(c.at.Load()), edm.Ticks(c.last.Load())+1).Time()
}

// AfterFunc calls f after d, which does not depend on Now.
func (*clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

// issued records Timestamps.
func (c *clock) issued(results []store.Result) {
	for _, r := range results {
		for {
			last := c.last.Load()
			if int64(r.Timestamp) <= last || c.last.CompareAndSwap(last, int64(r.Timestamp)) {
				break
			}
		}
	}
}

// newDatabase returns an empty database.
func newDatabase(t testing.TB, name string, now func() time.Time) (*database, error) {
	d := &database{t: t, name: name, clock: &clock{now: now}}
	d.options = engine.Options{SegmentBytes: smallestSegment, Cache: engine.NewCache(cacheBytes)}
	d.options.Testing.Clock = d.clock
	if err := d.clock.read(); err != nil {
		return nil, err
	}
	return d, d.open(vfs.NewMem())
}

// readClock reads the clock for a write. A time without a Timestamp fails the test: the database refuses
// the write, but a client gets a 503 that does not say why, and tries again.
func (d *database) readClock() {
	if err := d.clock.read(); err != nil {
		d.t.Errorf("tabletest: %v", err)
	}
}

// open replaces the current database by that in fs.
func (d *database) open(fs *vfs.Mem) error {
	o := d.options
	o.FS = fs
	db, err := engine.Open(d.name, o)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	old := d.current.Swap(&opened{db, fs})
	if old == nil {
		return nil
	}
	// In the background: it waits for the end of a compaction.
	d.background.Go(func() {
		noFlush, cancel := context.WithCancel(context.Background())
		cancel()
		_ = old.CloseContext(noFlush) // nobody uses its files again
	})
	return nil
}

// files returns a copy of the files.
func (d *database) files() *vfs.Mem { return d.current.Load().fs.Clone() }

// flushed returns a copy of a file system, in which the log of the database is empty.
// BenchmarkReset/entities=1000 takes a third of the time with it.
func (d *database) flushed(fs *vfs.Mem) (*vfs.Mem, error) {
	o := d.options
	o.FS = fs.Clone()
	db, err := engine.Open(d.name, o)
	if err != nil {
		return nil, err
	}
	return o.FS.(*vfs.Mem), db.Close()
}

// Close implements store.Store.
func (d *database) Close() error {
	err := d.current.Load().Close()
	d.background.Wait()
	return err
}

// CreateTable implements store.Store.
func (d *database) CreateTable(ctx context.Context, table string) error {
	d.readClock()
	return d.current.Load().CreateTable(ctx, table)
}

// DeleteTable implements store.Store.
func (d *database) DeleteTable(ctx context.Context, table string) error {
	d.readClock()
	return d.current.Load().DeleteTable(ctx, table)
}

// Tables implements store.Store.
func (d *database) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	return d.current.Load().Tables(ctx, from, limit)
}

// Get implements store.Store.
func (d *database) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	return d.current.Load().Get(ctx, table, key)
}

// View implements store.Store.
func (d *database) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	return d.current.Load().View(ctx, table, key, read)
}

// Query implements store.Store.
func (d *database) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return d.current.Load().Query(ctx, table, q)
}

// Apply implements store.Store.
func (d *database) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	d.readClock()
	results, err := d.current.Load().Apply(ctx, table, ops...)
	d.clock.issued(results)
	return results, err
}

// TableMeta implements store.Store.
func (d *database) TableMeta(ctx context.Context, table string) ([]byte, error) {
	return d.current.Load().TableMeta(ctx, table)
}

// SetTableMeta implements store.Store.
func (d *database) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	d.readClock()
	return d.current.Load().SetTableMeta(ctx, table, meta)
}

// AccountMeta implements store.Store.
func (d *database) AccountMeta(ctx context.Context) ([]byte, error) {
	return d.current.Load().AccountMeta(ctx)
}

// SetAccountMeta implements store.Store.
func (d *database) SetAccountMeta(ctx context.Context, meta []byte) error {
	d.readClock()
	return d.current.Load().SetAccountMeta(ctx, meta)
}
