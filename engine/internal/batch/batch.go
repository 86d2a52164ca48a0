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

// Batch is the working memory of a batch, or of several that have one record in the log.
// One goroutine at a time uses it, for one record after the other: Add, Append, the log's
// Wait for Commit, Results, Release.
type Batch struct {
	// Commit is the record.
	Commit *commitlog.Commit

	db *DB
	// subs are the batches, of which the first one alone has an op that is not an upsert.
	subs []sub
	// upserts says that all ops are of the kind OpInsertOrReplace. Then Add encodes the
	// entries. Others are resolved and encoded by Append.
	upserts bool
	use     space.Use
	// table is the id of the table, found in logged.
	table  uint32
	logged *catalog.Logged
	guard  func() error // checkTable
	check  func(i int, props edm.Properties) (bytes int, ok bool)

	// keys are encoded keys, back to back, and keyEnds their ends. candidates has one of each
	// key.
	keys       []byte
	keyEnds    []int
	candidates []lsm.Candidate
	partHash   uint64       // of the partition of the last batch
	locks      partlock.Set // of the partitions of all batches
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

// sub is a batch of a Batch.
type sub struct {
	ops   []store.Op
	first int // of its entries in the commit
}

// New returns a Batch for db.
func New(db *DB) *Batch {
	b := &Batch{db: db, Commit: commitlog.NewCommit()}
	b.guard, b.check = b.checkTable, b.shapes.check
	return b
}

// maxKeptProps is the capacity of the longest list that Release keeps. A merge that is not refused needs less.
const maxKeptProps = 4 * edm.MaxProperties

// Release ends the use of the ops and keeps the memory for other batches.
func (b *Batch) Release() {
	b.Commit.Reset()
	b.shapes.reset(nil)
	clear(b.subs)
	if cap(b.props) > maxKeptProps {
		b.props = nil
	}
	clear(b.props[:cap(b.props)]) // an earlier op can have had more than the last one
	b.subs, b.props, b.pending, b.logged, b.locks = b.subs[:0], b.props[:0], 0, nil, partlock.Set{}
}

// Upserts reports whether ops do not depend on what is stored, so that their batch can be
// added to one of such ops.
func Upserts(ops []store.Op) bool {
	for i := range ops {
		if ops[i].Kind != store.OpInsertOrReplace {
			return false
		}
	}
	return true
}

// Add adds a batch. b refers to ops until Release. A batch can be added to others if Upserts
// of all of them. The error is the *store.OpError of the first rule of store.CheckBatch that
// ops break, or ErrTableGone if there is no such table; then b is as before.
func (b *Batch) Add(table string, ops []store.Op) error {
	if len(b.subs) == 0 {
		b.shapes.reset(b.db.Shapes)
	}
	b.shapes.begin(len(ops))
	if err := store.CheckBatch(table, ops, b.check); err != nil {
		return err
	}
	if len(b.subs) == 0 {
		b.logged = b.db.Logged.Load()
		info := b.logged.Lookup(table)
		if info == nil {
			return ErrTableGone
		}
		b.table, b.use, b.upserts = info.ID, space.Write, Upserts(ops)
		if !slices.ContainsFunc(ops, func(op store.Op) bool { return op.Kind != store.OpDelete }) {
			b.use = space.Delete
		}
	}
	s := sub{ops: ops, first: b.Commit.Len()}
	if b.upserts {
		if err := b.encodeUpserts(ops); err != nil {
			return err
		}
	}
	b.subs = append(b.subs, s)
	return nil
}

// encodeUpserts adds the entries of ops to the commit, all or none.
func (b *Batch) encodeUpserts(ops []store.Op) error {
	b.keys = codec.AppendPartition(b.keys[:0], b.table, ops[0].Entity.Key.Partition)
	part := len(b.keys)
	partHash := codec.PartitionHash(b.keys)
	b.Commit.BeginPart(partHash, part)
	for i := range ops {
		op := &ops[i]
		b.keys = codec.AppendRow(b.keys[:part], op.Entity.Key.Row)
		keyHash := uint64(0) // unused in NoSync mode
		if !b.db.NoSync {
			keyHash = codec.KeyHash(b.keys)
		}
		if err := b.encode(b.keys, keyHash, op, b.shapes.of(i, op.Entity.Properties), op.Entity.Properties); err != nil {
			b.Commit.DropPart()
			return &store.OpError{Index: i, Executed: true, Err: err}
		}
	}
	// Not before: after an error the record has the earlier batches only, and Append locks their partition.
	b.partHash = partHash
	b.locks.Add(partHash)
	return nil
}

// Use returns for what the record needs space.
func (b *Batch) Use() space.Use { return b.use }

// checkTable returns ErrTableGone if the table of the ops has been dropped.
func (b *Batch) checkTable() error {
	if now := b.db.Logged.Load(); now != b.logged && !now.Live(b.table) {
		return ErrTableGone
	}
	return nil
}

// Append resolves the ops against the newest versions, durable or not, and appends their
// record to the log, all under the locks of their partitions. The error is a *store.OpError,
// ErrTableGone, or that of Log.Append. After an ErrNoSpace it may be called again.
func (b *Batch) Append() error { return b.append(false) }

// AppendDeferred is Append of a commit that is deferred.
func (b *Batch) AppendDeferred() error { return b.append(true) }

func (b *Batch) append(deferred bool) error {
	c := b.Commit
	if !b.upserts {
		c.Reset()
		b.encodeKeys(b.subs[0].ops)
	}
	c.Guard, c.Use, c.Deferred = b.guard, b.use, deferred
	if len(b.subs) > 1 {
		b.db.Locks.LockSet(&b.locks)
		defer b.db.Locks.UnlockSet(&b.locks)
		return b.db.Log.Append(c)
	}
	lock := b.db.Locks.Of(b.partHash)
	spinlock.Lock(lock)
	defer lock.Unlock()
	if !b.upserts {
		if err := b.resolveAll(b.subs[0].ops); err != nil {
			return err
		}
	}
	return b.db.Log.Append(c)
}

// Pending returns a sequence number that must be durable before an error of Add or
// Append is shown, because the error was computed from what it wrote. 0 is durable.
func (b *Batch) Pending(err error) uint64 {
	if errors.Is(err, ErrTableGone) {
		return b.db.Logged.Load().Pending(b.db.Log.Published())
	}
	var refused *store.OpError
	if b.logged != nil && errors.As(err, &refused) {
		// It also says that the table exists.
		return max(b.pending, b.logged.Pending(b.db.Log.Published()))
	}
	return b.pending
}

// Results returns the results of the batch that was added as number i, from 0 on, once the
// record is in the log.
func (b *Batch) Results(i int) []store.Result {
	s := b.subs[i]
	return b.results.of(s.ops, b.Commit.FirstTimestamp()+edm.Ticks(s.first), b.Commit.Len()-s.first)
}

// encodeKeys sets keys, their hashes and candidates.
func (b *Batch) encodeKeys(ops []store.Op) {
	b.keys = codec.AppendPartition(b.keys[:0], b.table, ops[0].Entity.Key.Partition)
	part := len(b.keys)
	b.partHash = codec.PartitionHash(b.keys)
	b.Commit.BeginPart(b.partHash, part)
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
		key := b.keys[start:end:end]
		b.candidates[i] = lsm.Candidate{Key: key, Hash: codec.KeyHash(key), Maybe: true}
		start = end
	}
}
