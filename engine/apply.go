package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// txn is the working memory of one Apply.
type txn struct {
	commit *commitlog.Commit
	// db, table and view are what the guard of the commit looks at.
	db    *DB
	table uint32
	view  *catalog.Logged
	// keys are those of the operations, back to back, and wants one of each;
	// partHash is of their partition.
	keys     []byte
	wants    []lsm.Candidate
	partHash uint64
	// state is pinned while the operations are resolved, nil if it is not.
	state  *readState
	props  edm.Properties
	shapes opShapes
	known  func(i int, props edm.Properties) bool // shapes.known
	mem    codec.Row
	disk   sstable.Row
	etag   []byte
	ends   []int // of the keys in keys, then of the ETags in etag
	format edm.ETagFormat
	out    []store.Result  // for results to hand out
	text   strings.Builder // the ETags of results
	// pending is the highest sequence number of a pending entry that this
	// transaction looked at; a refusal waits until it is durable.
	pending uint64
}

func newTxn() any {
	t := &txn{commit: commitlog.NewCommit()}
	t.known = t.shapes.known
	return t
}

func (t *txn) release() {
	t.commit.Reset()
	clear(t.props)
	t.props = t.props[:0]
	t.pending = 0
	t.view = nil
	t.shapes.reset(nil, 0)
	t.db.txns.Put(t)
}

// errTableGone says that the table was dropped after the operations had begun.
var errTableGone = errors.New("table was dropped")

// Check is asked right before the record enters the log: the table that the
// operations were resolved for must still be there.
func (t *txn) Check() error {
	if now := t.db.logged.Load(); now != t.view && !now.Live(t.table) {
		return errTableGone
	}
	return nil
}

// Apply implements store.Store.
func (db *DB) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.beginWrite(); err != nil {
		return nil, err
	}
	defer db.writers.RUnlock()
	t := db.txns.Get().(*txn)
	t.db = db
	defer t.release()
	return db.apply(ctx, t, table, ops)
}

// apply is Apply with the working memory t.
func (db *DB) apply(ctx context.Context, t *txn, table string, ops []store.Op) ([]store.Result, error) {
	t.shapes.reset(&db.shapes, len(ops))
	if err := store.CheckBatchFunc(table, ops, t.known); err != nil {
		return nil, err
	}
	view := db.logged.Load()
	info := view.Lookup(table)
	if info == nil {
		return nil, db.log.Settle(view.Pending(db.log.Published()), &store.OpError{Err: store.ErrTableNotFound})
	}
	if err := db.throttle(ctx); err != nil {
		return nil, err
	}
	t.table, t.view = info.ID, view
	t.commit.Guard = t
	err := db.place(t, info.ID, ops)
	if errors.Is(err, errTableGone) {
		return nil, db.log.Settle(db.logged.Load().Pending(db.log.Published()), &store.OpError{Err: store.ErrTableNotFound})
	}
	if err != nil {
		return nil, db.log.Settle(t.pending, err)
	}
	if err := db.complete(t.commit); err != nil {
		return nil, err
	}
	return t.results(ops), nil
}

// complete waits for what the database promises of a commit in the log.
func (db *DB) complete(c *commitlog.Commit) error {
	if db.opts.NoSync {
		// The write is in the database. If the log cannot keep up with it, the
		// next one hears of that.
		_ = db.log.WriteBehind()
		return nil
	}
	if err := db.log.Wait(c); err != nil {
		return err
	}
	db.afterWrite()
	return nil
}

// place resolves the operations against what is in the log and appends their
// record, in the partition's turn.
func (db *DB) place(t *txn, table uint32, ops []store.Op) error {
	t.address(table, ops)
	turn := &db.turns[t.partHash%turnStripes]
	turn.Lock()
	defer turn.Unlock()
	if err := db.resolveAll(t, ops); err != nil {
		return err
	}
	return db.log.Append(t.commit)
}

// turnStripes is the number of partitions that can be in their turn at once.
const turnStripes = 1024

// address works out the keys of ops and their hashes.
func (t *txn) address(table uint32, ops []store.Op) {
	t.keys = codec.AppendPartition(t.keys[:0], table, ops[0].Entity.Key.Partition)
	part := len(t.keys)
	t.partHash = codec.PartitionHash(t.keys)
	t.commit.SetPartition(t.partHash, part)
	t.ends = t.ends[:0]
	for i := range ops {
		if i > 0 {
			t.keys = append(t.keys, t.keys[:part]...)
		}
		t.keys = codec.AppendRow(t.keys, ops[i].Entity.Key.Row)
		t.ends = append(t.ends, len(t.keys))
	}
	t.wants = slices.Grow(t.wants[:0], len(ops))[:len(ops)]
	start := 0
	for i, end := range t.ends {
		want := &t.wants[i]
		*want = lsm.Candidate{Key: t.keys[start:end:end], Maybe: true}
		if ops[i].Kind != store.OpInsertOrReplace || !t.db.opts.NoSync {
			want.Hash = codec.KeyHash(want.Key) // else nobody asks for it
		}
		start = end
	}
}

// resolveAll encodes what ops leave behind, or refuses them.
func (db *DB) resolveAll(t *txn, ops []store.Op) error {
	defer t.leave()
	err := db.sift(t, ops)
	for i := range ops {
		if err == nil {
			err = db.resolve(t, i, &ops[i])
		}
		if err != nil {
			// What is found of a dropped table says nothing.
			if gone := t.Check(); gone != nil {
				return gone
			}
			return &store.OpError{Index: i, Executed: true, Err: err}
		}
	}
	return nil
}

// resolve encodes what op, the operation i, leaves behind, or refuses it.
func (db *DB) resolve(t *txn, i int, op *store.Op) error {
	want := &t.wants[i]
	if op.Kind == store.OpInsertOrReplace {
		return t.encode(want, op.Entity.Key, t.shapes.of(i, op.Entity.Properties), op.Entity.Properties)
	}
	var row edm.Row
	if want.Maybe {
		var err error
		if row, err = db.current(t, want); err != nil {
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
		t.commit.Delete(want.Key, want.Hash)
		return nil
	}
	if row != nil && (op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge) {
		t.props = store.MergeProperties(t.props[:0], row, op.Entity.Properties)
		return t.encode(want, op.Entity.Key, db.shapes.of(t.props), t.props)
	}
	return t.encode(want, op.Entity.Key, t.shapes.of(i, op.Entity.Properties), op.Entity.Properties)
}

// encode appends a put of key with props, which have the given shape, to the
// commit.
func (t *txn) encode(want *lsm.Candidate, key edm.Key, shape *codec.Shape, props edm.Properties) error {
	size := t.commit.Put(want.Key, want.Hash, shape, props)
	// The formula counts at most two bytes for each encoded one, and a fixed
	// amount and the name for each property: only what comes near needs it.
	if 2*size+shape.Len()*(2*edm.MaxNameUnits+16) > edm.MaxEntityBytes || shape.Len() > edm.MaxProperties {
		return edm.CheckTotals(key, props)
	}
	return nil
}

// sift finds out which of the keys of a batch cannot be there, so that current
// need not be asked for each.
func (db *DB) sift(t *txn, ops []store.Op) error {
	asks := func(op store.Op) bool { return op.Kind != store.OpInsertOrReplace }
	if len(ops) == 1 || !slices.ContainsFunc(ops, asks) {
		return nil
	}
	for {
		if err := db.enter(t); err != nil {
			return err
		}
		quiet := db.log.Quiet(t.partHash)
		for i := range t.wants {
			want := &t.wants[i]
			if want.Maybe = false; !quiet {
				_, want.Maybe = db.log.Pending(t.partHash, want.Hash, want.Key)
			}
		}
		if db.state.load() == t.state {
			t.state.sift(t.partHash, t.wants)
			return nil
		}
		t.leave() // as in current
	}
}

// enter pins the current state, unless t has one pinned.
func (db *DB) enter(t *txn) error {
	if t.state == nil {
		t.state = db.state.pin(t.partHash)
	}
	if t.state == nil {
		return store.ErrClosed
	}
	return nil
}

// leave gives up the row that current found, and the pinned state.
func (t *txn) leave() {
	t.disk.Release()
	if t.state != nil {
		t.state.unpin(t.partHash)
		t.state = nil
	}
}

// current returns the newest entity of a key in the overlay, the memtables and
// the files, durable or not, nil if there is none. It lives until the next call
// or leave. The caller has the partition's turn.
func (db *DB) current(t *txn, want *lsm.Candidate) (edm.Row, error) {
	for {
		if err := db.enter(t); err != nil {
			return nil, err
		}
		p, ok := db.log.Pending(t.partHash, want.Hash, want.Key)
		switch {
		case ok && slices.Contains(t.state.mems, p.Seg):
			t.pending = max(t.pending, p.Seq)
			if p.Row(&t.mem) {
				return &t.mem, nil
			}
			return nil, nil
		case ok || db.state.load() != t.state:
			// The log has moved on to a segment that the state does not hold: what
			// was pending may be there by now.
			t.leave()
		default:
			return t.state.get(want.Key, t.partHash, want.Hash, codec.MaxSeq, &t.mem, &t.disk)
		}
	}
}

// What results allocates at a time. Who keeps one of few results keeps up to so
// much memory, or as much as the ETags of a batch before it.
const (
	resultsAtOnce = 16
	etagsAtOnce   = 512
)

// results returns what became of ops. Few of them share their memory with those
// of other calls, and all ETags of a call are one string.
func (t *txn) results(ops []store.Op) []store.Result {
	n := len(ops)
	if len(t.out) < n {
		t.out = make([]store.Result, max(n, resultsAtOnce))
	}
	out := t.out[:n:n]
	t.out = t.out[n:]
	t.etag, t.ends = t.etag[:0], t.ends[:0]
	for i := range ops {
		if ops[i].Kind != store.OpDelete {
			out[i].Timestamp = t.commit.FirstTimestamp() + edm.Ticks(i)
			t.etag = t.format.Append(t.etag, out[i].Timestamp)
		}
		t.ends = append(t.ends, len(t.etag))
	}
	if t.text.Cap()-t.text.Len() < len(t.etag) {
		t.text.Reset()
		t.text.Grow(max(len(t.etag), etagsAtOnce))
	}
	start := t.text.Len()
	t.text.Write(t.etag)
	all := t.text.String()[start:]
	start = 0
	for i, end := range t.ends {
		out[i].ETag = edm.ETag(all[start:end])
		start = end
	}
	return out
}

// beginWrite admits a writing call; the caller ends it with writers.RUnlock.
func (db *DB) beginWrite() error {
	db.writers.RLock()
	var err error
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
