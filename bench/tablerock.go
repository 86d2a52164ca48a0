package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Tablerock is package engine on the file system of the operating system. The zero
// value has the engine's default options.
type Tablerock struct {
	// Small selects the slower compression for smaller files.
	Small bool
}

// table is the name of the table.
const table = "Telemetry"

// Name implements Store.
func (t Tablerock) Name() string {
	if t.Small {
		return "tablerock-compact"
	}
	return "tablerock"
}

// Describe implements Store.
func (t Tablerock) Describe() string {
	if t.Small {
		return "defaults with CompressSmall"
	}
	return "defaults: log segments of 64 MiB, compression s2"
}

// HasLog implements Store.
func (Tablerock) HasLog() bool { return true }

// HasBulk reports that a database is a BulkDB.
func (Tablerock) HasBulk() bool { return true }

// keptRuns is more runs than any workload makes. Options.KeepRuns needs it: Flush does
// no compaction, but a tier must not be full.
const keptRuns = 16

// Open implements Store.
func (t Tablerock) Open(ctx context.Context, dir string, o Options) (DB, error) {
	db := &rockDB{ctx: ctx}
	options := engine.Options{
		FS:           countFS{vfs.OS(), &db.counts},
		CacheBytes:   o.CacheBytes,
		SegmentBytes: min(o.LogBytes, maxSegment),
		NoSync:       !o.Durable,
	}
	if t.Small {
		options.Compression = engine.CompressSmall
	}
	if o.KeepRuns {
		options.TierRuns, options.Testing.Manual = keptRuns, true
	}
	e, err := engine.Open(dir, options)
	if err != nil {
		return nil, err
	}
	if err := e.CreateTable(ctx, table); err != nil && !errors.Is(err, store.ErrTableExists) {
		return nil, errors.Join(fmt.Errorf("create table: %w", err), e.Close())
	}
	db.engine = e
	return db, nil
}

const maxSegment = 1 << 30 // of engine.Options

type rockDB struct {
	ctx    context.Context // ends all operations but Get, which is short
	engine *engine.DB
	counts ioCounts
}

// Session implements DB.
func (d *rockDB) Session() Session {
	s := &rockSession{ctx: d.ctx, engine: d.engine}
	s.read = func(row edm.Row) error {
		s.fold.Row(row)
		return nil
	}
	return s
}

// Load implements BulkDB.
func (d *rockDB) Load(entities iter.Seq2[edm.Entity, error]) error {
	_, err := d.engine.Load(d.ctx, table, entities, engine.LoadOptions{})
	return err
}

// Flush implements DB.
func (d *rockDB) Flush() error { return d.engine.Flush(d.ctx) }

// WaitIdle implements DB.
func (d *rockDB) WaitIdle() (time.Duration, error) {
	if err := d.engine.Flush(d.ctx); err != nil {
		return 0, err
	}
	for {
		worked, err := d.engine.Step(d.ctx)
		if err != nil || !worked {
			return 0, err
		}
	}
}

// Compact implements DB.
func (d *rockDB) Compact() error { return d.engine.Compact(d.ctx) }

// Syncs implements DB.
func (d *rockDB) Syncs() int64 { return d.counts.syncs.Load() }

// Reads implements DB.
func (d *rockDB) Reads() (n, bytes int64) { return d.counts.reads.Load(), d.counts.readBytes.Load() }

// maxCloseFlush is the limit of engine.DB.Close.
const maxCloseFlush = 10 * time.Second

// Close implements DB as engine.DB.Close, but the end of ctx ends its flush.
func (d *rockDB) Close() error {
	ctx, cancel := context.WithTimeout(d.ctx, maxCloseFlush)
	defer cancel()
	return d.engine.CloseContext(ctx)
}

type rockSession struct {
	ctx     context.Context
	engine  *engine.DB
	ops     []store.Op
	batches [][]store.Op // of ops
	fold    *Fold
	read    func(edm.Row) error
}

// Put implements Session with one ApplyBatches, or one Apply if all entities are of one
// partition.
func (s *rockSession) Put(entities []edm.Entity) error {
	s.ops = s.ops[:0]
	for i := range entities {
		s.ops = append(s.ops, store.InsertOrReplace(entities[i]))
	}
	return s.apply()
}

// Delete implements Session in the same way.
func (s *rockSession) Delete(keys []edm.Key) error {
	s.ops = s.ops[:0]
	for _, key := range keys {
		s.ops = append(s.ops, store.Delete(key, store.Any))
	}
	return s.apply()
}

func (s *rockSession) apply() error {
	s.batches = s.batches[:0]
	partition := func(i int) string { return s.ops[i].Entity.Key.Partition }
	for from, i := 0, 1; i <= len(s.ops); i++ {
		if i == len(s.ops) || i-from == edm.MaxBatchOps || partition(i) != partition(from) {
			s.batches = append(s.batches, s.ops[from:i])
			from = i
		}
	}
	var err error
	if len(s.batches) == 1 {
		_, err = s.engine.Apply(s.ctx, table, s.ops...)
	} else {
		_, err = s.engine.ApplyBatches(s.ctx, table, s.batches)
	}
	return err
}

// Get implements Session.
func (s *rockSession) Get(key edm.Key, f *Fold) (bool, error) {
	s.fold = f
	err := s.engine.View(context.Background(), table, key, s.read)
	if errors.Is(err, store.ErrEntityNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Scan implements Session.
func (s *rockSession) Scan(scan Scan, f *Fold) error {
	q := store.Query{Limit: scan.Limit}
	if scan.Match != nil {
		q.Filter = scan.Match.Expr
	}
	if scan.Partition != "" {
		key := edm.Key{Partition: scan.Partition}
		q.Filter = filter.And(q.Filter, filter.Keys(
			filter.Bound{Kind: filter.BeforePartition, Key: key}, filter.Bound{Kind: filter.AfterPartition, Key: key}))
	} else if scan.From.Partition != "" {
		q.From = &scan.From
	}
	c := s.engine.Query(s.ctx, table, q)
	byColumns := c.(store.ColumnCursor)
	for {
		if rows := byColumns.NextColumns(); rows != nil {
			if err := f.Columns(rows); err != nil {
				return errors.Join(err, c.Close())
			}
		} else if c.Next() {
			f.Row(c.Row())
		} else {
			return errors.Join(c.Err(), c.Close())
		}
	}
}

// Count implements Session.
func (s *rockSession) Count() (int64, error) {
	var n int64
	c := s.engine.Query(s.ctx, table, store.Query{})
	byColumns := c.(store.ColumnCursor)
	for {
		if rows := byColumns.NextColumns(); rows != nil {
			n += int64(rows.Len())
		} else if c.Next() {
			n++
		} else {
			return n, errors.Join(c.Err(), c.Close())
		}
	}
}
