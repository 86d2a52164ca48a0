package catalog

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Change is a change of a catalog: the rows that it stores and deletes in the
// catalog's table, and the catalog after it.
type Change struct {
	Put     []edm.Entity
	Delete  []edm.Key
	Dropped uint32 // id of the table that After has no more, 0 for none
	After   *Catalog
}

// Create returns the change that creates a table, or store.ErrTableExists, or
// store.ErrReadOnly if no table id is left.
func (c *Catalog) Create(name string, now edm.Ticks) (Change, error) {
	if c.Lookup(name) != nil {
		return Change{}, store.ErrTableExists
	}
	if c.next > MaxTableID {
		return Change{}, fmt.Errorf("%w: no id is left for another table", store.ErrReadOnly)
	}
	t := &Table{ID: c.next, Name: name, Created: now}
	return Change{Put: []edm.Entity{NextEntity(t.ID + 1), t.Entity()}, After: c.with(t)}, nil
}

// Drop returns the change that deletes a table, or store.ErrTableNotFound.
func (c *Catalog) Drop(name string) (Change, error) {
	t := c.Lookup(name)
	if t == nil {
		return Change{}, store.ErrTableNotFound
	}
	return Change{Delete: []edm.Key{t.rowKey()}, Dropped: t.ID, After: c.without(t)}, nil
}

// SetMeta returns the change that sets the metadata of a table, of which it keeps
// a copy, or store.ErrTableNotFound.
func (c *Catalog) SetMeta(name string, meta []byte) (Change, error) {
	old := c.Lookup(name)
	if old == nil {
		return Change{}, store.ErrTableNotFound
	}
	t := *old
	t.Meta = cloneMeta(meta)
	return Change{Put: []edm.Entity{t.Entity()}, After: c.with(&t)}, nil
}

// SetAccount returns the change that sets the account's metadata, of which it
// keeps a copy.
func (c *Catalog) SetAccount(meta []byte) Change {
	meta = cloneMeta(meta)
	return Change{Put: []edm.Entity{accountEntity(meta)}, After: c.withAccount(meta)}
}

// cloneMeta copies metadata. Empty metadata is nil.
func cloneMeta(meta []byte) []byte {
	if len(meta) == 0 {
		return nil
	}
	return slices.Clone(meta)
}

// Logged is a catalog with every change that is in the log, durable or not.
type Logged struct {
	*Catalog
	Seq uint64 // the sequence number of the last change in the log
}

// Pending returns the sequence number that must be durable before an answer
// computed from l is given, 0 if all of l is durable. published is the last
// sequence number known to be durable.
func (l *Logged) Pending(published uint64) uint64 {
	if l.Seq > published {
		return l.Seq
	}
	return 0
}

// Drops has the sequence numbers at which tables were dropped since Open, as long as
// they matter. All methods may be called concurrently. The zero Drops is empty.
type Drops struct {
	mu sync.Mutex
	// +checklocks:mu
	seqs map[uint32]uint64 // by table id
	// +checklocks:mu
	most int // length of seqs at which final drops are forgotten
	last atomic.Uint64
}

// minDrops is the least length of Drops at which final drops are forgotten.
const minDrops = 128

// Add notes that the change at seq dropped a table; id 0 is none. Earlier drops up to
// final may be forgotten.
func (d *Drops) Add(id uint32, seq, final uint64) {
	if id == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seqs == nil {
		d.seqs, d.most = make(map[uint32]uint64), minDrops
	}
	if len(d.seqs) >= d.most {
		maps.DeleteFunc(d.seqs, func(_ uint32, seq uint64) bool { return seq <= final })
		d.most = max(minDrops, 2*len(d.seqs))
	}
	d.seqs[id] = seq
	d.last.Store(max(d.last.Load(), seq))
}

// Last returns the sequence number of the last drop since Open, 0 if there was none. It takes no lock.
func (d *Drops) Last() uint64 { return d.last.Load() }

// Seq returns the sequence number at which a table was dropped, 0 if that was
// before Open or is forgotten.
func (d *Drops) Seq(id uint32) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seqs[id]
}

// Len returns the number of drops that are kept.
func (d *Drops) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seqs)
}
