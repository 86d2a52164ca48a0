package batch

import (
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
)

// resolveAll adds the entries of all ops to the commit. If one is refused it
// returns a *store.OpError, or ErrTableGone.
func (b *Batch) resolveAll(ops []store.Op) error {
	defer b.unpinState()
	err := b.probeFilters(len(ops))
	for i := range ops {
		if err == nil {
			err = b.resolve(i, &ops[i])
		}
		if err != nil {
			// The rows of a dropped table vanish one file at a time, so the
			// refusal may be wrong.
			if gone := b.checkTable(); gone != nil {
				return gone
			}
			return &store.OpError{Index: i, Executed: true, Err: err}
		}
	}
	return nil
}

// resolve adds the entry of op i to the commit, or refuses the op.
func (b *Batch) resolve(i int, op *store.Op) error {
	c := &b.candidates[i]
	if op.Kind == store.OpInsertOrReplace {
		return b.encode(c.Key, c.Hash, op, b.shapes.of(i, op.Entity.Properties), op.Entity.Properties)
	}
	var row edm.Row
	if c.Maybe {
		var err error
		if row, err = b.newestVersion(c); err != nil {
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
			b.etag = edm.AppendETag(b.etag[:0], row.Timestamp())
			if string(b.etag) != string(op.IfMatch) {
				return store.ErrPrecondition
			}
		}
	}
	if op.Kind == store.OpDelete {
		b.Commit.Delete(c.Key, c.Hash)
		return nil
	}
	if row != nil && (op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge) {
		if row == &b.disk.Row {
			if err := b.disk.Load(); err != nil {
				return err
			}
		}
		b.props = store.MergeProperties(b.props[:0], row, op.Entity.Properties)
		return b.encode(c.Key, c.Hash, op, b.db.Shapes.Of(b.props), b.props)
	}
	return b.encode(c.Key, c.Hash, op, b.shapes.of(i, op.Entity.Properties), op.Entity.Properties)
}

// encode adds a put of the result of op, whose properties props have the given
// shape, to the commit. Only an insert keeps their order.
func (b *Batch) encode(key []byte, hash uint64, op *store.Op, shape *codec.Shape, props edm.Properties) error {
	if shape.Len() > edm.MaxProperties { // the offsets of a shape hold no more
		return edm.CheckTotals(op.Entity.Key, props)
	}
	if op.Kind != store.OpInsert {
		props, shape = b.db.Shapes.Sorted(&b.props, props, shape)
	}
	size := b.Commit.Put(key, hash, shape, props)
	// The formula of the limit counts at most two bytes for each encoded byte,
	// and for each property its name and a fixed amount. Only entities near the
	// limit need the exact sum.
	if 2*size+shape.Len()*(2*edm.MaxNameUnits+16) > edm.MaxEntityBytes {
		return edm.CheckTotals(op.Entity.Key, props)
	}
	return nil
}

// probeFilters clears Maybe for the keys of a batch of n ops that no entry can have, so
// that newestVersion is not called for them.
func (b *Batch) probeFilters(n int) error {
	if n == 1 {
		return nil
	}
	for {
		if err := b.pinState(); err != nil {
			return err
		}
		pending := b.db.Log.HasPending(b.partHash)
		for i := range b.candidates {
			c := &b.candidates[i]
			if c.Maybe = false; pending {
				_, c.Maybe = b.db.Log.Pending(b.partHash, c.Hash, c.Key)
			}
		}
		if b.db.State.Load() == b.state {
			b.state.ProbeFilters(b.partHash, b.candidates)
			return nil
		}
		b.unpinState() // as in newestVersion
	}
}

// pinState pins the current read state, unless b has pinned one.
func (b *Batch) pinState() error {
	if b.state == nil {
		b.state = b.db.State.Pin(b.partHash)
	}
	if b.state == nil {
		return store.ErrClosed
	}
	return nil
}

// unpinState releases the row of newestVersion and unpins the read state.
func (b *Batch) unpinState() {
	b.disk.Release()
	if b.state != nil {
		b.state.Unpin(b.partHash)
		b.state = nil
	}
}

// newestVersion returns the newest version of a key in the overlay, the memtables
// and the sstables, durable or not, nil if it does not exist or is a tombstone. The
// values of b.disk are not loaded. The row is valid until the next call and until
// unpinState. The caller holds the partition lock.
func (b *Batch) newestVersion(c *lsm.Candidate) (edm.Row, error) {
	for {
		if err := b.pinState(); err != nil {
			return nil, err
		}
		p, ok := b.db.Log.Pending(b.partHash, c.Hash, c.Key)
		switch {
		case ok && slices.Contains(b.state.Mems, p.Seg):
			b.pending = max(b.pending, p.Seq)
			if p.Row(&b.mem) {
				return &b.mem, nil
			}
			return nil, nil
		case ok || b.db.State.Load() != b.state:
			// The log has started a segment that the pinned state does not have. An
			// entry that was pending before may be there now.
			b.unpinState()
		default:
			b.disk.Lazy = true
			return b.state.Get(c.Key, b.partHash, c.Hash, codec.MaxSeq, &b.mem, &b.disk)
		}
	}
}
