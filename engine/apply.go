package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/opresults"
	"github.com/tablerock-db/tablerock/engine/internal/opshapes"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/spinlock"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// txn is the working memory of one Apply.
type txn struct {
	db     *DB
	commit *commitlog.Commit
	guard  func() error // checkTable
	// table is the id of the table, found in logged.
	table  uint32
	logged *catalog.Logged
	// keys are the encoded keys of the ops, back to back, and keyEnds their ends.
	// candidates has one of each key.
	keys       []byte
	keyEnds    []int
	candidates []lsm.Candidate
	partHash   uint64 // of the partition of all keys
	// state is pinned while the ops are resolved, and nil otherwise.
	state  *readstate.State
	props  edm.Properties // the result of a merge op
	shapes opshapes.Shapes
	check  func(i int, props edm.Properties) (bytes int, ok bool) // shapes.Check
	mem    codec.Row
	disk   sstable.Row
	// pending is the highest sequence number of a pending entry that an op
	// depends on. A refusal waits until it is durable.
	pending uint64

	etag    []byte // of an entity
	results opresults.Maker
}

func newTxn() any {
	t := &txn{commit: commitlog.NewCommit()}
	t.guard, t.check = t.checkTable, t.shapes.Check
	return t
}

func (t *txn) release() {
	t.commit.Reset()
	clear(t.props)
	t.props, t.pending, t.logged = t.props[:0], 0, nil
	t.shapes.Reset(nil, 0)
	t.db.txns.Put(t)
}

// errTableGone says that the table was dropped after the ops had been checked.
var errTableGone = errors.New("table was dropped")

// checkTable returns errTableGone if the table of the ops has been dropped.
func (t *txn) checkTable() error {
	if now := t.db.logged.Load(); now != t.logged && !now.Live(t.table) {
		return errTableGone
	}
	return nil
}

// Apply applies ops to entities of one partition, all or none, and returns one
// result for each, in order. When it returns nil, the ops are durable and visible
// to every later read; with Options.NoSync they are visible and not yet durable. Their
// Timestamps are later than all of an Apply, on any key, that returned before.
//
// If the error is, by errors.Is, store.ErrOutcomeUnknown, the ops may have
// happened, all or none; the next Open decides. After any other error none of them
// happened. An op that is refused is a *store.OpError, whose order is described
// at store.Store. Other errors are store.ErrClosed, store.ErrReadOnly and
// store.ErrNoSpace, and the error of ctx. On a full disk ops that only delete succeed
// as long as the reserve lasts (Options.ReserveBytes). ctx is not checked any more once the
// record of the ops is in the log.
//
// Apply waits while flushes or compactions are behind. It keeps no reference to
// ops after it returns.
func (db *DB) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.beginWrite(); err != nil {
		return nil, err
	}
	defer db.endWrite()
	t := db.txns.Get().(*txn)
	t.db = db
	defer t.release()
	return db.apply(ctx, t, table, ops)
}

// apply is Apply with the working memory t.
func (db *DB) apply(ctx context.Context, t *txn, table string, ops []store.Op) ([]store.Result, error) {
	t.shapes.Reset(&db.shapes, len(ops))
	if err := store.CheckBatch(table, ops, t.check); err != nil {
		return nil, err
	}
	t.logged = db.logged.Load()
	info := t.logged.Lookup(table)
	if info == nil {
		return nil, db.refuse(t.logged.Pending(db.log.Published()), &store.OpError{Err: store.ErrTableNotFound})
	}
	use := space.Delete
	if slices.ContainsFunc(ops, func(op store.Op) bool { return op.Kind != store.OpDelete }) {
		use = space.Write
	}
	if err := db.throttle(ctx, use); err != nil {
		return nil, err
	}
	t.table = info.ID
	err := db.withSpace(ctx, use, func() error {
		t.commit.Reset()
		t.commit.Guard, t.commit.Use = t.guard, use
		return db.appendOps(t, ops)
	})
	if errors.Is(err, errTableGone) {
		return nil, db.refuse(db.logged.Load().Pending(db.log.Published()), &store.OpError{Err: store.ErrTableNotFound})
	}
	if err != nil {
		return nil, db.refuse(t.pending, err)
	}
	if err := db.waitCommit(t.commit); err != nil {
		return nil, err
	}
	db.afterCommit(use)
	return t.results.Make(ops, t.commit.FirstTimestamp()), nil
}

// refuse returns err once the assigned sequence number seq, on which err depends,
// is durable, or why it cannot be. A seq of 0 is durable.
func (db *DB) refuse(seq uint64, err error) error {
	if werr := db.log.WaitDurable(seq); werr != nil {
		return werr
	}
	return err
}

// waitCommit waits until c, which is in the log, is as durable as the options
// promise.
func (db *DB) waitCommit(c *commitlog.Commit) error {
	if db.opts.NoSync {
		// The write has happened. If the log fails now, the next write is refused.
		_ = db.log.WriteBehind()
		return nil
	}
	if err := db.log.Wait(c); err != nil {
		return err
	}
	db.afterWrite()
	return nil
}

// appendOps resolves the ops against the newest versions, durable or not, and
// appends their record to the log, all under the partition lock.
func (db *DB) appendOps(t *txn, ops []store.Op) error {
	t.encodeKeys(ops)
	lock := db.partitionLocks.Of(t.partHash)
	spinlock.Lock(lock)
	defer lock.Unlock()
	if err := db.resolveAll(t, ops); err != nil {
		return err
	}
	return db.log.Append(t.commit)
}

// encodeKeys sets keys, their hashes and candidates.
func (t *txn) encodeKeys(ops []store.Op) {
	t.keys = codec.AppendPartition(t.keys[:0], t.table, ops[0].Entity.Key.Partition)
	part := len(t.keys)
	t.partHash = codec.PartitionHash(t.keys)
	t.commit.SetPartition(t.partHash, part)
	t.keyEnds = t.keyEnds[:0]
	for i := range ops {
		if i > 0 {
			t.keys = append(t.keys, t.keys[:part]...)
		}
		t.keys = codec.AppendRow(t.keys, ops[i].Entity.Key.Row)
		t.keyEnds = append(t.keyEnds, len(t.keys))
	}
	t.candidates = slices.Grow(t.candidates[:0], len(ops))[:len(ops)]
	start := 0
	for i, end := range t.keyEnds {
		c := &t.candidates[i]
		*c = lsm.Candidate{Key: t.keys[start:end:end], Maybe: true}
		if ops[i].Kind != store.OpInsertOrReplace || !t.db.opts.NoSync {
			c.Hash = codec.KeyHash(c.Key) // otherwise unused
		}
		start = end
	}
}

// resolveAll adds the entries of all ops to the commit. If one is refused it
// returns a *store.OpError, or errTableGone.
func (db *DB) resolveAll(t *txn, ops []store.Op) error {
	defer t.unpinState()
	err := db.probeFilters(t, ops)
	for i := range ops {
		if err == nil {
			err = db.resolve(t, i, &ops[i])
		}
		if err != nil {
			// The rows of a dropped table vanish one file at a time, so the
			// refusal may be wrong.
			if gone := t.checkTable(); gone != nil {
				return gone
			}
			return &store.OpError{Index: i, Executed: true, Err: err}
		}
	}
	return nil
}

// resolve adds the entry of op, the operation i, to the commit, or refuses op.
func (db *DB) resolve(t *txn, i int, op *store.Op) error {
	c := &t.candidates[i]
	if op.Kind == store.OpInsertOrReplace {
		return t.encode(c, op, t.shapes.Of(i, op.Entity.Properties), op.Entity.Properties)
	}
	var row edm.Row
	if c.Maybe {
		var err error
		if row, err = db.newestVersion(t, c); err != nil {
			return err
		}
	}
	switch op.Kind {
	case store.OpInsert:
		if row != nil {
			return store.ErrEntityExists
		}
	case store.OpMerge, store.OpReplace, store.OpDelete:
		if row == nil {
			return store.ErrEntityNotFound
		}
		if op.IfMatch != store.Any {
			t.etag = edm.AppendETag(t.etag[:0], row.Timestamp())
			if string(t.etag) != string(op.IfMatch) {
				return store.ErrPrecondition
			}
		}
	}
	if op.Kind == store.OpDelete {
		t.commit.Delete(c.Key, c.Hash)
		return nil
	}
	if row != nil && (op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge) {
		t.props = store.MergeProperties(t.props[:0], row, op.Entity.Properties)
		return t.encode(c, op, db.shapes.Of(t.props), t.props)
	}
	return t.encode(c, op, t.shapes.Of(i, op.Entity.Properties), op.Entity.Properties)
}

// encode adds a put of the result of op, whose properties props have the given
// shape, to the commit. Only an insert keeps their order.
func (t *txn) encode(c *lsm.Candidate, op *store.Op, shape *codec.Shape, props edm.Properties) error {
	if op.Kind != store.OpInsert {
		props, shape = t.db.shapes.Sorted(&t.props, props, shape)
	}
	size := t.commit.Put(c.Key, c.Hash, shape, props)
	// The formula of the limit counts at most two bytes for each encoded byte,
	// and for each property its name and a fixed amount. Only entities near the
	// limit need the exact sum.
	if 2*size+shape.Len()*(2*edm.MaxNameUnits+16) > edm.MaxEntityBytes || shape.Len() > edm.MaxProperties {
		return edm.CheckTotals(op.Entity.Key, props)
	}
	return nil
}

// probeFilters clears Maybe for the keys of a batch that no entry can have, so
// that newestVersion is not called for them.
func (db *DB) probeFilters(t *txn, ops []store.Op) error {
	conditional := func(op store.Op) bool { return op.Kind != store.OpInsertOrReplace }
	if len(ops) == 1 || !slices.ContainsFunc(ops, conditional) {
		return nil
	}
	for {
		if err := db.pinState(t); err != nil {
			return err
		}
		pending := db.log.HasPending(t.partHash)
		for i := range t.candidates {
			c := &t.candidates[i]
			if c.Maybe = false; pending {
				_, c.Maybe = db.log.Pending(t.partHash, c.Hash, c.Key)
			}
		}
		if db.state.Load() == t.state {
			t.state.ProbeFilters(t.partHash, t.candidates)
			return nil
		}
		t.unpinState() // as in newestVersion
	}
}

// pinState pins the current read state, unless t has pinned one.
func (db *DB) pinState(t *txn) error {
	if t.state == nil {
		t.state = db.state.Pin(t.partHash)
	}
	if t.state == nil {
		return store.ErrClosed
	}
	return nil
}

// unpinState releases the row of newestVersion and unpins the read state.
func (t *txn) unpinState() {
	t.disk.Release()
	if t.state != nil {
		t.state.Unpin(t.partHash)
		t.state = nil
	}
}

// newestVersion returns the newest version of a key in the overlay, the memtables
// and the sstables, durable or not, nil if it does not exist or is a tombstone. The
// row is valid until the next call and until unpinState. The caller holds the
// partition lock.
func (db *DB) newestVersion(t *txn, c *lsm.Candidate) (edm.Row, error) {
	for {
		if err := db.pinState(t); err != nil {
			return nil, err
		}
		p, ok := db.log.Pending(t.partHash, c.Hash, c.Key)
		switch {
		case ok && slices.Contains(t.state.Mems, p.Seg):
			t.pending = max(t.pending, p.Seq)
			if p.Row(&t.mem) {
				return &t.mem, nil
			}
			return nil, nil
		case ok || db.state.Load() != t.state:
			// The log has started a segment that the pinned state does not have. An
			// entry that was pending before may be there now.
			t.unpinState()
		default:
			return t.state.Get(c.Key, t.partHash, c.Hash, codec.MaxSeq, &t.mem, &t.disk)
		}
	}
}

// beginWrite admits a call that writes. The caller must call endWrite.
// +checklocksignore
func (db *DB) beginWrite() (err error) {
	if !db.writers.TryRLock() { // Close has it, or waits for it
		return store.ErrClosed
	}
	switch {
	case db.closed.Load():
		err = store.ErrClosed
	case db.opts.ReadOnly:
		err = fmt.Errorf("%w: opened for reading", store.ErrReadOnly)
	case db.log.Failure() != nil:
		err = fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.Failure())
	default:
		return nil
	}
	db.writers.RUnlock()
	return err
}

// +checklocksignore
func (db *DB) endWrite() { db.writers.RUnlock() }
