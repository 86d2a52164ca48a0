package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Mode selects how an import treats existing entities.
type Mode uint8

// The modes. With Replace and Merge, a second import of the same file changes only the
// Timestamps.
const (
	Replace Mode = iota // replace the entity
	Merge               // set the properties of the file, keep the others
	Insert              // report an error for the row
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

// Progress counts the work of an import.
type Progress struct {
	Read         int64 // valid rows of the file that were read
	Rows         int64 // acknowledged
	Skipped      int64 // invalid rows
	SkippedLines int64 // of the invalid rows
	Transactions int64 // acknowledged
	Bytes        int64 // read from the file
}

// ImportOptions configures an import. Import calls Bad, Ack and Progress from one goroutine
// at a time, and none of the functions after it has returned. It may call Progress while Apply
// or Load runs.
type ImportOptions struct {
	Mode Mode
	// SkipBad skips rows that cannot be imported. The default is to stop at the first
	// one.
	SkipBad bool
	Bad     func(*LineError) // called for each skipped row
	// Ack is called with the lines of each acknowledged transaction, once for the lines before, between
	// and after rows that were skipped.
	Ack func(first, last int64) error
	// Progress is called after each transaction.
	Progress func(Progress)
	InFlight int // concurrent transactions, where Apply does not replace them; the default is 16
	// TransactionBytes limits the size of a transaction, by edm.EntitySize. The default is
	// 4 MiB.
	TransactionBytes int64
	// CheapReads says that a read of the Store costs much less than a transaction. In an import with
	// Insert and SkipBad, reads then find the rows that exist.
	CheapReads bool
	// Apply, if set, applies many transactions at a time in an import without SkipBad.
	Apply ApplyFunc
	// Load, if set, replaces transactions in an import with the mode Replace and without
	// Ack. Progress.Transactions then counts what Load made durable at once.
	Load LoadFunc
}

const defaultInFlight = 16

// maxTransactionBytes bounds the memory of a transaction.
const maxTransactionBytes = 4 << 20

// Import writes the entities of r to table in transactions. A transaction holds
// consecutive records of one PartitionKey: at most 100, of at most TransactionBytes, without
// duplicate keys. Transactions of one partition run in the order of the file; others
// run concurrently, or with ImportOptions.Apply, unless SkipBad is set, in groups.
//
// Import creates a missing table before the first transaction, or at the end of a file
// without rows. It creates no table for a file with invalid rows only.
//
// With ImportOptions.Load an import is no sequence of transactions, and what is stored of it
// is a prefix of the file.
//
// Import stops at the first row that cannot be imported and returns a *LineError. It reads a
// compressed file to its end before, and if its data is damaged, that is the error.
// Everything before the transaction of that row has been imported, and possibly some
// rows after it. When ctx ends, Import returns ctx's error; acknowledged transactions
// stay stored.
func Import(ctx context.Context, st store.Store, table string, r *Reader, o ImportOptions) (Progress, error) {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.TransactionBytes <= 0 {
		o.TransactionBytes = maxTransactionBytes
	}
	im := &importer{ctx: ctx, st: st, table: table, r: r, o: o, last: map[string]*transaction{}}
	im.failedAt.Store(noRow)
	switch {
	case o.Load != nil && o.Mode == Replace && o.Ack == nil:
		im.load()
	case o.Apply != nil && !o.SkipBad: // to skip a row, its transaction is divided before a later one runs
		im.inGroups()
	default:
		im.inTransactions()
	}
	im.explainBad()
	im.progress.Bytes = r.Bytes()      // +checklocksignore: the workers have ended
	im.progress.Read = im.valid.Load() // +checklocksignore: the workers have ended
	return im.progress, im.err         // +checklocksignore: the workers have ended
}

// explainBad replaces an error of the content of a compressed file if damage of the file can be
// its cause. It is called when the workers have ended.
func (im *importer) explainBad() {
	err := im.err // +checklocksignore: the workers have ended
	line := (*LineError)(nil)
	if !im.r.compressed || err == nil || err != im.r.err && !errors.As(err, &line) {
		return
	}
	stop := im.r.checkRest(im.ctx)
	switch {
	case stop == nil:
	case im.ctx.Err() != nil:
		im.err = im.ctx.Err() // +checklocksignore: the workers have ended
	default:
		im.err = fmt.Errorf("%s: %w", im.r.o.Name, stop) // +checklocksignore: the workers have ended
	}
}

// inTransactions imports in concurrent transactions.
func (im *importer) inTransactions() {
	jobs := make(chan *transaction)
	var workers sync.WaitGroup
	for range im.o.InFlight {
		workers.Go(func() {
			for tx := range jobs {
				im.run(tx)
			}
		})
	}
	im.read(func(tx *transaction) {
		partition := tx.ops[0].Entity.Key.Partition
		im.mu.Lock()
		tx.previous = im.last[partition]
		im.last[partition] = tx
		im.mu.Unlock()
		// Workers receive transactions in the order of the file, so a worker already has the
		// previous one, and waiting for it cannot deadlock.
		jobs <- tx
	})
	close(jobs)
	workers.Wait()
}

// noRow is greater than every number of a row.
const noRow = int64(1) << 62

// transaction is a sequence of records that is applied as one batch.
type transaction struct {
	ops       []store.Op
	lines     []lineRange // of each op
	skipped   []int64     // lines of rows among them that skipExisting has skipped
	number    int64       // of the first row, from 1 on: several rows may be in one line
	bytes     int64
	ascending bool // the RowKeys are in ascending order
	// previous is the transaction of the same partition that must end first, or nil.
	// done is closed when this transaction ends.
	previous *transaction
	done     chan struct{}
}

// stored returns the lines without those of skipped rows.
func (tx *transaction) stored() []lineRange {
	runs := []lineRange{tx.lines[0]}
	for i, l := range tx.lines[1:] {
		before := tx.lines[i].last
		if slices.ContainsFunc(tx.skipped, func(n int64) bool { return before < n && n < l.first }) {
			runs = append(runs, l)
		} else {
			runs[len(runs)-1].last = l.last
		}
	}
	return runs
}

// lineRange is the first and last line of a record.
type lineRange struct{ first, last int64 }

// importer is the state of one import.
type importer struct {
	ctx     context.Context
	st      store.Store
	table   string
	r       *Reader
	o       ImportOptions
	created bool // the table exists
	bad     bool // an invalid row was skipped
	valid   atomic.Int64
	// failedAt is the number of the row with the first error. Later transactions are dropped.
	failedAt atomic.Int64

	mu sync.Mutex
	// last maps a partition to its newest unfinished transaction.
	// +checklocks:mu
	last map[string]*transaction
	// +checklocks:mu
	progress Progress
	// err is the error at row failedAt.
	// +checklocks:mu
	err error
	// ackErr is the error of Ack, which is not called again.
	// +checklocks:mu
	ackErr error
}

// read splits the file into transactions and calls start with each in order.
func (im *importer) read(start func(*transaction)) {
	var tx *transaction
	dispatch := func() {
		if tx != nil && im.create() {
			start(tx)
		}
		tx = nil
	}
	for {
		rec, err := im.r.Next()
		if stop := im.ctx.Err(); stop != nil {
			im.fail(0, stop)
			return
		}
		if im.failedAt.Load() != noRow {
			return
		}
		if err != nil {
			dispatch()
			if !im.handleReadError(err) {
				return
			}
			continue
		}
		number := im.valid.Add(1)
		size := int64(edm.EntitySize(rec.Entity.Key, rec.Entity.Properties))
		if !tx.accepts(&rec, size, im.o.TransactionBytes) {
			dispatch()
			tx = &transaction{number: number, ascending: true, done: make(chan struct{})}
		}
		tx.add(im.o.Mode, &rec, size)
	}
}

// handleReadError handles an error of the reader. It reports whether to continue with
// the next record.
func (im *importer) handleReadError(err error) bool {
	var line *LineError
	switch {
	case err == io.EOF:
		if !im.bad && im.failedAt.Load() == noRow {
			im.create()
		}
		return false
	case im.ctx.Err() != nil: // the caller may have closed the file to stop the reader
		im.fail(0, im.ctx.Err())
		return false
	case errors.As(err, &line) && im.o.SkipBad:
		im.bad = true
		im.skip(line)
		return true
	}
	im.fail(im.valid.Load()+1, err)
	return false
}

// accepts reports whether rec, of size bytes, can be added to the transaction, which may
// be nil. A transaction has at most limit bytes.
func (tx *transaction) accepts(rec *Record, size, limit int64) bool {
	if tx == nil || len(tx.ops) == edm.MaxBatchOps || tx.bytes+size > limit {
		return false
	}
	key := &rec.Entity.Key
	if tx.ops[0].Entity.Key.Partition != key.Partition {
		return false
	}
	if tx.ascending && tx.ops[len(tx.ops)-1].Entity.Key.Row < key.Row {
		return true
	}
	tx.ascending = false
	for i := range tx.ops {
		if tx.ops[i].Entity.Key.Row == key.Row {
			return false
		}
	}
	return true
}

func (tx *transaction) add(m Mode, rec *Record, size int64) {
	tx.ops = append(tx.ops, m.op(rec.Entity))
	tx.lines = append(tx.lines, lineRange{rec.First, rec.Last})
	tx.bytes += size
}

// create creates the table if it is missing. It reports whether the table exists.
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

// run applies tx after the previous transaction of the partition.
func (im *importer) run(tx *transaction) {
	if tx.previous != nil {
		<-tx.previous.done
		tx.previous = nil
	}
	partition := tx.ops[0].Entity.Key.Partition
	// The row at end is invalid, unless line is nil. Rows before it can become so: others may
	// insert them too. Where row after row is invalid, as in a file that was imported before, most
	// limits what is sent in vain.
	end, line, most := len(tx.ops), (*LineError)(nil), len(tx.ops)
	for len(tx.ops) > 0 && tx.number < im.failedAt.Load() {
		if end > 0 {
			bad, err := im.apply(&transaction{ops: tx.ops[:end], lines: tx.lines[:end], skipped: tx.skipped})
			if err != nil && (bad < 0 || !im.o.SkipBad) {
				im.fail(tx.number+int64(max(bad, 0)), err)
				break
			}
			if errors.As(err, &line) {
				if end = bad; im.o.CheapReads && errors.Is(err, store.ErrEntityExists) {
					if !im.skipExisting(tx) {
						break
					}
					end, line = len(tx.ops), nil
				}
				continue
			}
		}
		switch {
		case line == nil:
			most *= 2
		case end == 0:
			most = 1
		}
		if line != nil {
			im.skip(line)
			end++
		}
		tx.ops, tx.lines, tx.number = tx.ops[end:], tx.lines[end:], tx.number+int64(end)
		end, line = min(len(tx.ops), most), nil
	}
	im.mu.Lock()
	if im.last[partition] == tx {
		delete(im.last, partition)
	}
	im.mu.Unlock()
	close(tx.done)
}

// skipExisting skips the rows of tx that exist, unless an error ends the import.
func (im *importer) skipExisting(tx *transaction) bool {
	kept := 0
	for i := range tx.ops {
		key := tx.ops[i].Entity.Key
		switch err := im.st.View(im.ctx, im.table, key, func(edm.Row) error { return nil }); {
		case err == nil:
			im.skip(im.r.lineError(tx.lines[i], rowError(store.ErrEntityExists, key)))
			tx.skipped = append(tx.skipped, tx.lines[i].first)
		case errors.Is(err, store.ErrEntityNotFound):
			tx.ops[kept], tx.lines[kept] = tx.ops[i], tx.lines[i]
			kept++
		default:
			_, err = im.finish(tx, err)
			im.fail(tx.number+int64(i), err)
			return false
		}
	}
	tx.ops, tx.lines = tx.ops[:kept], tx.lines[:kept]
	return true
}

// apply applies and acknowledges tx. Its results are those of finish.
func (im *importer) apply(tx *transaction) (bad int, err error) {
	_, err = im.st.Apply(im.ctx, im.table, tx.ops...)
	return im.finish(tx, err)
}

// finish acknowledges tx, unless there is an error of store.Store.Apply. If one row caused
// the error, bad is its index and the result a *LineError; otherwise bad is -1.
func (im *importer) finish(tx *transaction, err error) (bad int, _ error) {
	first, last := tx.lines[0].first, tx.lines[len(tx.lines)-1].last
	if err == nil {
		return -1, im.acknowledge(tx.stored(), len(tx.ops))
	}
	if stop := im.ctx.Err(); stop != nil && errors.Is(err, stop) {
		return -1, stop
	}
	var op *store.OpError
	if !errors.As(err, &op) || !isRowError(err) && !errors.Is(err, store.ErrEntityExists) {
		return -1, fmt.Errorf("%s: import lines %d to %d: %w", im.r.o.Name, first, last, err)
	}
	return op.Index, im.r.lineError(tx.lines[op.Index], rowError(op.Err, tx.ops[op.Index].Entity.Key))
}

// acknowledge notes that a transaction of the lines is stored.
func (im *importer) acknowledge(lines []lineRange, rows int) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.progress.Rows += int64(rows)
	im.progress.Transactions++
	im.progress.Bytes, im.progress.Read = im.r.Bytes(), im.valid.Load()
	for _, l := range lines {
		if im.o.Ack == nil || im.ackErr != nil {
			break
		}
		if err := im.o.Ack(l.first, l.last); err != nil {
			im.ackErr = fmt.Errorf("write acknowledgement of lines %d to %d: %w", l.first, l.last, err)
		}
	}
	if im.ackErr != nil {
		return im.ackErr
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
	im.progress.SkippedLines += line.Last - line.Line + 1
	if im.o.Bad != nil {
		im.o.Bad(line)
	}
}

// fail ends the import with an error at the row with a number, unless there is an error at an
// earlier one. 0 is before all rows.
func (im *importer) fail(row int64, err error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if row < im.failedAt.Load() {
		im.failedAt.Store(row)
		im.err = err
	}
}
