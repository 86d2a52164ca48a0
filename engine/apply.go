package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/shapes"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// txn is the working memory of one Apply.
type txn struct {
	commit *commitlog.Commit
	// db, table and view are what the guard of the commit looks at.
	db    *DB
	table uint32
	view  *catalogView
	key   []byte
	props edm.Properties
	// shapes are what check has found out about ops.
	shapes shapes.Checked
	check  store.Checker
	mem    codec.Row
	disk   sstable.Row
	etag   []byte
	ends   []int // of the ETags in etag
	format edm.ETagFormat
	// pending is the highest sequence number of a pending entry that this
	// transaction looked at; a refusal waits until it is durable.
	pending uint64
}

func newTxn() any {
	t := &txn{commit: commitlog.NewCommit()}
	t.check.Known = t.shapes.Known
	return t
}

func (t *txn) release() {
	t.commit.Reset()
	clear(t.props)
	t.props = t.props[:0]
	t.pending = 0
	t.view = nil
	t.shapes.Reset(nil)
	t.db.txns.Put(t)
}

// errTableGone says that the table was dropped after the operations had begun.
var errTableGone = errors.New("table was dropped")

// Check is asked right before the record enters the log: the table that the
// operations were resolved for must still be there.
func (t *txn) Check() error {
	if now := t.db.tables.Load(); now != t.view && !now.catalog.Live(t.table) {
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
	t.shapes.Reset(&db.shapes)
	if err := t.check.Check(table, ops); err != nil {
		return nil, err
	}
	view := db.tables.Load()
	info := view.catalog.Lookup(table)
	if info == nil {
		return nil, db.log.Settle(view.pending(db), &store.OpError{Err: store.ErrTableNotFound})
	}
	if err := db.throttle(ctx); err != nil {
		return nil, err
	}
	t.table, t.view = info.ID, view
	t.commit.Guard = t
	err := db.place(t, info.ID, ops)
	if errors.Is(err, errTableGone) {
		return nil, db.log.Settle(db.tables.Load().pending(db), &store.OpError{Err: store.ErrTableNotFound})
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
	first := &ops[0].Entity.Key
	t.key = codec.AppendKey(t.key[:0], table, first.Partition, first.Row)
	partHash := codec.PartitionHash(t.key)

	turn := &db.turns[partHash%turnStripes]
	turn.Lock()
	defer turn.Unlock()
	for i := range ops {
		op := &ops[i]
		if i > 0 {
			t.key = codec.AppendKey(t.key[:0], table, op.Entity.Key.Partition, op.Entity.Key.Row)
		}
		if err := db.resolve(t, op, partHash); err != nil {
			// What is found of a dropped table says nothing.
			if gone := t.Check(); gone != nil {
				return gone
			}
			return &store.OpError{Index: i, Executed: true, Err: err}
		}
	}
	return db.log.Append(t.commit)
}

// turnStripes is the number of partitions that can be in their turn at once.
const turnStripes = 1024

// resolve encodes what op leaves behind, or refuses it.
func (db *DB) resolve(t *txn, op *store.Op, partHash uint64) error {
	if op.Kind == store.OpInsertOrReplace {
		// Nothing is looked up, and only the overlay needs the hash.
		keyHash := uint64(0)
		if !db.opts.NoSync {
			keyHash = codec.KeyHash(t.key)
		}
		return t.encode(keyHash, op.Entity.Key, op.Entity.Properties)
	}
	keyHash := codec.KeyHash(t.key)
	cur, err := db.current(t, partHash, keyHash)
	if err != nil {
		return err
	}
	defer cur.release(t)
	switch op.Kind {
	case store.OpInsert:
		if cur.row != nil {
			return store.ErrEntityExists
		}
	case store.OpMerge, store.OpReplace, store.OpDelete:
		if cur.row == nil {
			return store.ErrEntityNotFound
		}
		if op.IfMatch != store.Any {
			t.etag = edm.AppendETag(t.etag[:0], cur.row.Timestamp())
			if string(t.etag) != string(op.IfMatch) {
				return store.ErrPrecondition
			}
		}
	}
	if op.Kind == store.OpDelete {
		t.commit.Delete(t.key, keyHash)
		return nil
	}
	props := op.Entity.Properties
	if cur.row != nil && (op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge) {
		t.shapes.Of(props) // takes its turn; what is stored has another shape
		t.props = store.MergeProperties(t.props[:0], cur.row, props)
		props = t.props
	}
	return t.encode(keyHash, op.Entity.Key, props)
}

// encode appends a put of key with props to the commit.
func (t *txn) encode(keyHash uint64, key edm.Key, props edm.Properties) error {
	shape := t.shapes.Of(props)
	size := t.commit.Put(t.key, keyHash, shape, props)
	// The formula counts at most two bytes for each encoded one, and a fixed
	// amount and the name for each property: only what comes near needs it.
	if 2*size+shape.Len()*(2*edm.MaxNameUnits+16) > edm.MaxEntityBytes || shape.Len() > edm.MaxProperties {
		return store.CheckResult(key, props)
	}
	return nil
}

// current is what an operation finds: the newest entry of its key, durable or
// not.
type current struct {
	row   edm.Row // nil if there is no entity
	state *readState
	shard uint64
}

func (c *current) release(t *txn) {
	t.disk.Release()
	c.state.unpin(c.shard)
}

// current finds the newest entry of t.key in the overlay, the memtables and the
// files. The caller has the partition's turn.
func (db *DB) current(t *txn, partHash, keyHash uint64) (current, error) {
	for {
		s := db.pin(keyHash)
		if s == nil {
			return current{}, store.ErrClosed
		}
		cur := current{state: s, shard: keyHash}
		p, ok := db.log.Pending(keyHash, t.key)
		switch {
		case ok && slices.Contains(s.mems, p.Seg):
			t.pending = max(t.pending, p.Seq)
			if p.Row(&t.mem) {
				cur.row = &t.mem
			}
			return cur, nil
		case ok || db.state.Load() != s:
			// The log has moved on to a segment that s does not hold: what was
			// pending may be there by now.
			cur.release(t)
			continue
		}
		row, err := s.get(t.key, partHash, keyHash, codec.MaxSeq, &t.mem, &t.disk)
		if err != nil {
			cur.release(t)
			return current{}, err
		}
		cur.row = row
		return cur, nil
	}
}

// results returns what became of ops. The ETags share one string.
func (t *txn) results(ops []store.Op) []store.Result {
	out := make([]store.Result, len(ops))
	t.etag, t.ends = t.etag[:0], t.ends[:0]
	for i := range ops {
		if ops[i].Kind != store.OpDelete {
			out[i].Timestamp = t.commit.FirstTimestamp() + edm.Ticks(i)
			t.etag = t.format.Append(t.etag, out[i].Timestamp)
		}
		t.ends = append(t.ends, len(t.etag))
	}
	all := string(t.etag)
	start := 0
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
