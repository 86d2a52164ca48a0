package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Mode is what an import does with entities that exist.
type Mode uint8

// The modes. A second import of the same file changes nothing but Timestamps
// in the first two.
const (
	Replace Mode = iota // put the file's in their place
	Merge               // set the file's properties, keep others
	Insert              // refuse the row
)

// op returns the operation that imports e.
func (m Mode) op(e edm.Entity) store.Op {
	switch m {
	case Merge:
		return store.InsertOrMerge(e)
	case Insert:
		return store.Insert(e)
	}
	return store.InsertOrReplace(e)
}

// Progress is how far an import has come.
type Progress struct {
	Rows         int64 // acknowledged
	Skipped      int64 // bad rows that were passed over
	Transactions int64 // acknowledged
	Bytes        int64 // read of the file
}

// ImportOptions say how rows are imported. The functions are called by one
// goroutine at a time, and not after Import has returned.
type ImportOptions struct {
	Mode Mode
	// SkipBad passes over rows that cannot be imported. The default is to stop
	// at the first one.
	SkipBad bool
	Bad     func(*LineError)              // gets each row that is passed over
	Ack     func(first, last int64) error // gets the lines of each acknowledged transaction
	// Progress is called after each transaction.
	Progress func(Progress)
	InFlight int // transactions at a time; the default is 16
}

const defaultInFlight = 16

// Import puts the entities of r into table, in transactions: runs of records with one PartitionKey, at most 100 and 4 MiB,
// none with a key twice. Those of one partition follow each other in the order
// of the file; others overlap.
//
// A table that is missing is made before the first transaction, or at the end of
// a file without rows; a file whose rows are all bad leaves none behind.
//
// It stops at the first row that cannot be imported, with a *LineError; all
// before the transaction of that row has been imported, and possibly some behind
// it. When ctx ends it returns ctx's error, and what was acknowledged stays.
func Import(ctx context.Context, st store.Store, table string, r *Reader, o ImportOptions) (Progress, error) {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	im := &importer{ctx: ctx, st: st, table: table, r: r, o: o, jobs: make(chan *transaction), last: map[string]*transaction{}}
	im.failedAt.Store(noLine)
	var workers sync.WaitGroup
	for range o.InFlight {
		workers.Go(func() {
			for tx := range im.jobs {
				im.run(tx)
			}
		})
	}
	im.read()
	close(im.jobs)
	workers.Wait()
	im.progress.Bytes = r.Bytes()
	return im.progress, im.err
}

// noLine is behind every line of a file.
const noLine = int64(1) << 62

// transaction is a run of records that is applied as one batch.
type transaction struct {
	ops    []store.Op
	lines  []lines // of each op
	bytes  int64
	rising bool // each row is greater than the one before
	// before is the transaction of the same partition that must be over first,
	// nil for none; done is closed when this one is over.
	before *transaction
	done   chan struct{}
}

// lines are where one record stands.
type lines struct{ first, last int64 }

// importer is one import on its way.
type importer struct {
	ctx   context.Context
	st    store.Store
	table string
	r     *Reader
	o     ImportOptions
	jobs  chan *transaction
	// created says that the table is there, and bad that a row was passed over
	// unread.
	created, bad bool
	// failedAt is the line of the first failure; transactions behind it are
	// dropped.
	failedAt atomic.Int64

	mu sync.Mutex
	// last holds, by partition, the newest transaction that is not over.
	// +checklocks:mu
	last map[string]*transaction
	// +checklocks:mu
	progress Progress
	// err belongs to the line failedAt.
	// +checklocks:mu
	err error
}

// read cuts the file into transactions.
func (im *importer) read() {
	var tx *transaction
	for {
		rec, err := im.r.Next()
		if stop := im.ctx.Err(); stop != nil {
			im.fail(0, stop)
			return
		}
		if im.failedAt.Load() != noLine {
			return
		}
		if err != nil {
			im.dispatch(tx)
			tx = nil
			if !im.pass(rec, err) {
				return
			}
			continue
		}
		size := int64(edm.EntitySize(rec.Entity.Key, rec.Entity.Properties))
		if !tx.takes(&rec, size) {
			im.dispatch(tx)
			tx = &transaction{rising: true, done: make(chan struct{})}
		}
		tx.add(im.o.Mode, &rec, size)
	}
}

// pass reports whether the import goes on behind a record that could not be
// read.
func (im *importer) pass(rec Record, err error) bool {
	var line *LineError
	switch {
	case err == io.EOF:
		if !im.bad {
			im.create()
		}
		return false
	case im.ctx.Err() != nil: // the reader may have been closed to stop it
		im.fail(0, im.ctx.Err())
		return false
	case errors.As(err, &line) && im.o.SkipBad:
		im.bad = true
		im.skip(line)
		return true
	}
	im.fail(max(rec.First, 1), err)
	return false
}

// takes reports whether the transaction, which may be nil, has a place for rec,
// whose entity counts size bytes.
func (tx *transaction) takes(rec *Record, size int64) bool {
	if tx == nil || len(tx.ops) == edm.MaxBatchOps || tx.bytes+size > edm.MaxBatchBytes {
		return false
	}
	key := &rec.Entity.Key
	if tx.ops[0].Entity.Key.Partition != key.Partition {
		return false
	}
	if tx.rising && tx.ops[len(tx.ops)-1].Entity.Key.Row < key.Row {
		return true
	}
	tx.rising = false
	for i := range tx.ops {
		if tx.ops[i].Entity.Key.Row == key.Row {
			return false
		}
	}
	return true
}

func (tx *transaction) add(m Mode, rec *Record, size int64) {
	tx.ops = append(tx.ops, m.op(rec.Entity))
	tx.lines = append(tx.lines, lines{rec.First, rec.Last})
	tx.bytes += size
}

// dispatch hands tx, which may be nil, to a worker.
func (im *importer) dispatch(tx *transaction) {
	if tx == nil {
		return
	}
	if !im.create() {
		return
	}
	partition := tx.ops[0].Entity.Key.Partition
	im.mu.Lock()
	tx.before = im.last[partition]
	im.last[partition] = tx
	im.mu.Unlock()
	// Workers take transactions in the order of the file, so the one before is
	// with a worker already, and waiting for it cannot last.
	im.jobs <- tx
}

// create makes the table, and reports whether it is there.
func (im *importer) create() bool {
	if im.created {
		return true
	}
	if err := im.st.CreateTable(im.ctx, im.table); err != nil && !errors.Is(err, store.ErrTableExists) {
		im.fail(0, fmt.Errorf("create table %s: %w", im.table, err))
		return false
	}
	im.created = true
	return true
}

// run applies tx after the one before it.
func (im *importer) run(tx *transaction) {
	if tx.before != nil {
		<-tx.before.done
		tx.before = nil
	}
	partition := tx.ops[0].Entity.Key.Partition
	for len(tx.ops) > 0 && tx.lines[0].first < im.failedAt.Load() {
		bad, err := im.apply(tx)
		if err == nil {
			break
		}
		if bad < 0 || !im.o.SkipBad {
			im.fail(tx.lines[max(bad, 0)].first, err)
			break
		}
		// The rows before the bad one go first, as if it had not been there.
		before := &transaction{ops: tx.ops[:bad], lines: tx.lines[:bad]}
		if bad > 0 {
			if _, err := im.apply(before); err != nil {
				im.fail(tx.lines[0].first, err)
				break
			}
		}
		var line *LineError
		errors.As(err, &line)
		im.skip(line)
		tx.ops, tx.lines = tx.ops[bad+1:], tx.lines[bad+1:]
	}
	im.mu.Lock()
	if im.last[partition] == tx {
		delete(im.last, partition)
	}
	im.mu.Unlock()
	close(tx.done)
}

// apply carries out tx and acknowledges it. If one of its rows is to blame, bad
// is its index and the error a *LineError; otherwise bad is -1.
func (im *importer) apply(tx *transaction) (bad int, err error) {
	_, err = im.st.Apply(im.ctx, im.table, tx.ops...)
	first, last := tx.lines[0].first, tx.lines[len(tx.lines)-1].last
	if err == nil {
		return -1, im.acknowledge(first, last, len(tx.ops))
	}
	if stop := im.ctx.Err(); stop != nil && errors.Is(err, stop) {
		return -1, stop
	}
	var op *store.OpError
	if !errors.As(err, &op) || !inRow(err) && !errors.Is(err, store.ErrEntityExists) {
		return -1, fmt.Errorf("%s: import lines %d to %d: %w", im.r.o.Name, first, last, err)
	}
	key := tx.ops[op.Index].Entity.Key
	err = fmt.Errorf("%w (PartitionKey %s, RowKey %s)", op.Err, quote(key.Partition), quote(key.Row))
	return op.Index, &LineError{im.r.o.Name, tx.lines[op.Index].first, err}
}

func (im *importer) acknowledge(first, last int64, rows int) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.progress.Rows += int64(rows)
	im.progress.Transactions++
	im.progress.Bytes = im.r.Bytes()
	if im.o.Ack != nil {
		if err := im.o.Ack(first, last); err != nil {
			return fmt.Errorf("write acknowledgement of lines %d to %d: %w", first, last, err)
		}
	}
	if im.o.Progress != nil {
		im.o.Progress(im.progress)
	}
	return nil
}

func (im *importer) skip(line *LineError) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.progress.Skipped++
	if im.o.Bad != nil {
		im.o.Bad(line)
	}
}

// fail ends the import with an error at a line, unless one at an earlier line
// has. Line 0 is before all.
func (im *importer) fail(line int64, err error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if line < im.failedAt.Load() {
		im.failedAt.Store(line)
		im.err = err
	}
}
