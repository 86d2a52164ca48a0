// Package batch takes the ops of one batch to the log: it checks them, resolves them
// against the newest versions of their entities, and makes their results.
package batch

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/partlock"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/spinlock"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// DB is what the batches of a database share. Package engine sets every field.
type DB struct {
	Log    *commitlog.Log
	State  *readstate.Current
	Logged *atomic.Pointer[catalog.Logged] // the catalog that writers see
	Shapes *codec.ShapeCache
	Locks  *partlock.Locks
	NoSync bool
}

// ErrTableGone says that there is no table, or that it was dropped after the ops had been
// checked.
var ErrTableGone = errors.New("table was dropped")

// Batch is the working memory of a batch. One goroutine at a time uses it, for one batch
// after the other: Check, then Append, then the log's Wait for Commit, then Results.
type Batch struct {
	// Commit is the record of the ops.
	Commit *commitlog.Commit

	db  *DB
	ops []store.Op
	// table is the id of the table, found in logged.
	table  uint32
	logged *catalog.Logged
	use    space.Use
	guard  func() error // checkTable
	check  func(i int, props edm.Properties) (bytes int, ok bool)

	// keys are the encoded keys of the ops, back to back, and keyEnds their ends.
	// candidates has one of each key.
	keys       []byte
	keyEnds    []int
	candidates []lsm.Candidate
	partHash   uint64 // of the partition of all keys
	// state is pinned while the ops are resolved, and nil otherwise.
	state *readstate.State
	props edm.Properties // the result of a merge op
	mem   codec.Row
	disk  sstable.Row
	etag  []byte // of an entity
	// pending is the highest sequence number of a pending entry that an op depends on.
	pending uint64

	shapes  shapes
	results results
}

// New returns a Batch for db.
func New(db *DB) *Batch {
	b := &Batch{db: db, Commit: commitlog.NewCommit()}
	b.guard, b.check = b.checkTable, b.shapes.check
	return b
}

// Release ends the use of the ops and keeps the memory for the next batch.
func (b *Batch) Release() {
	b.Commit.Reset()
	b.shapes.reset(nil, 0)
	clear(b.props)
	b.ops, b.props, b.pending, b.logged = nil, b.props[:0], 0, nil
}

// Check returns the *store.OpError of the first rule of store.CheckBatch that ops break,
// or ErrTableGone if there is no such table. b refers to ops until Release, which the
// caller calls before the next Check.
func (b *Batch) Check(table string, ops []store.Op) error {
	b.ops = ops
	b.shapes.reset(b.db.Shapes, len(ops))
	if err := store.CheckBatch(table, ops, b.check); err != nil {
		return err
	}
	b.logged = b.db.Logged.Load()
	info := b.logged.Lookup(table)
	if info == nil {
		return ErrTableGone
	}
	b.table, b.use = info.ID, space.Delete
	if slices.ContainsFunc(ops, func(op store.Op) bool { return op.Kind != store.OpDelete }) {
		b.use = space.Write
	}
	return nil
}

// Use returns for what the record of the ops, which Check has accepted, needs space.
func (b *Batch) Use() space.Use { return b.use }

// checkTable returns ErrTableGone if the table of the ops has been dropped.
func (b *Batch) checkTable() error {
	if now := b.db.Logged.Load(); now != b.logged && !now.Live(b.table) {
		return ErrTableGone
	}
	return nil
}

// Append resolves the ops against the newest versions, durable or not, and appends their
// record to the log, all under the partition lock. The error is an *store.OpError,
// ErrTableGone, or that of Log.Append; then Append may be called again.
func (b *Batch) Append() error {
	b.Commit.Reset()
	b.Commit.Guard, b.Commit.Use = b.guard, b.use
	b.encodeKeys()
	lock := b.db.Locks.Of(b.partHash)
	spinlock.Lock(lock)
	defer lock.Unlock()
	if err := b.resolveAll(); err != nil {
		return err
	}
	return b.db.Log.Append(b.Commit)
}

// Pending returns a sequence number that must be durable before an error of Check or
// Append is shown, because the error was computed from what it wrote. 0 is durable.
func (b *Batch) Pending(err error) uint64 {
	if errors.Is(err, ErrTableGone) {
		return b.db.Logged.Load().Pending(b.db.Log.Published())
	}
	return b.pending
}

// Results returns the results of the ops, whose record is in the log.
func (b *Batch) Results() []store.Result { return b.results.of(b.ops, b.Commit.FirstTimestamp()) }

// encodeKeys sets keys, their hashes and candidates.
func (b *Batch) encodeKeys() {
	ops := b.ops
	b.keys = codec.AppendPartition(b.keys[:0], b.table, ops[0].Entity.Key.Partition)
	part := len(b.keys)
	b.partHash = codec.PartitionHash(b.keys)
	b.Commit.SetPartition(b.partHash, part)
	b.keyEnds = b.keyEnds[:0]
	for i := range ops {
		if i > 0 {
			b.keys = append(b.keys, b.keys[:part]...)
		}
		b.keys = codec.AppendRow(b.keys, ops[i].Entity.Key.Row)
		b.keyEnds = append(b.keyEnds, len(b.keys))
	}
	b.candidates = slices.Grow(b.candidates[:0], len(ops))[:len(ops)]
	start := 0
	for i, end := range b.keyEnds {
		c := &b.candidates[i]
		*c = lsm.Candidate{Key: b.keys[start:end:end], Maybe: true}
		if ops[i].Kind != store.OpInsertOrReplace || !b.db.NoSync {
			c.Hash = codec.KeyHash(c.Key) // otherwise unused
		}
		start = end
	}
}
