// Package memtable indexes the entries of one log segment: point reads, and
// ordered iteration at any sequence number that a snapshot still holds.
//
// A Table keeps no copy of a key or a value. It holds 24 bytes per row that
// point into the segment's image, in three forms by the size of the partition,
// all but the largest free of pointers, so that the garbage collector has
// nothing to follow. Partitions are found by hash; their order is worked out
// when a scan across partitions asks for it, so a load never pays for it.
//
// Locks, outermost first: the directory of partitions, then one shard. Neither
// is held while anything outside this package runs.
package memtable

import (
	"bytes"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
)

// shardCount is the number of shards; the low bits of a partition's hash
// choose one, the high 32 bits its slot there.
const shardCount = 64

// Options are the parameters of a Table.
type Options struct {
	// Image is the segment's image, at most 4 GiB. Bytes of an entry do not
	// change once it was applied. It has no default.
	Image []byte
}

// Table is the index. One goroutine at a time calls AddShape and Apply;
// everything else is safe beside it and beside each other.
type Table struct {
	image  []byte
	shapes *codec.ShapeList // by id - 1
	mem    atomic.Int64     // bytes allocated
	places atomic.Int64     // partitions in all shards
	dir    directory

	// The partition of the last entry applied, which only Apply uses.
	last     []byte
	lastHash uint64

	shards [shardCount]shard
}

// New returns an empty Table.
func New(o Options) *Table {
	if uint64(len(o.Image)) > math.MaxUint32 {
		panic("memtable: image larger than 4 GiB")
	}
	t := &Table{image: o.Image, shapes: codec.NewShapeList(o.Image, shapeBudget)}
	t.mem.Store(tableBytes)
	t.dir.init(t)
	for i := range t.shards {
		t.shards[i].init(t)
	}
	return t
}

// shapeBudget is how many bytes of decoded shapes a Table keeps: those of some
// hundred entities with as many properties as they can have.
const shapeBudget = 4 << 20

// AddShape makes s, whose definition is the entry at image[off:], the shape that
// entries call id. It comes before the first such entry. Ids rise from 1.
func (t *Table) AddShape(id uint16, off uint32, s *codec.Shape) {
	if int(id) != t.shapes.Len()+1 {
		panic(fmt.Sprintf("memtable: shape %d after %d of them", id, t.shapes.Len()))
	}
	t.shapes.Add(int(off)+codec.EntryHeaderLen, s)
}

// Shape returns the shape that entries call id, nil if there is none.
func (t *Table) Shape(id uint16) *codec.Shape {
	if id == 0 || int(id) > t.shapes.Len() {
		return nil
	}
	return t.shapes.At(int(id) - 1)
}

// Shapes returns the number of shapes.
func (t *Table) Shapes() int { return t.shapes.Len() }

// Apply indexes the entry at image[off:], a put or a delete. The sequence
// numbers of one key rise. The version that was the newest of its key until
// then stays readable if its sequence number is at most keep, which is the
// newest sequence number that a registered snapshot or a running scan reads; 0
// keeps none and drops the older versions of the key too.
//
// A snapshot registers between two calls, and at a sequence number that is at
// least that of every entry applied by then: at a smaller one it could need a
// version that is dropped already.
func (t *Table) Apply(off uint32, seq uint64, keep uint64) {
	s := t.locate(off)
	s.mu.Lock()
	s.applyLocked(nil, t.lastHash, len(t.last), off, seq, keep)
	s.mu.Unlock()
}

// ApplyAll is Apply of the entries at offs, with sequence numbers from seq on.
// Their keys are in the partition that has the hash partHash and whose key has
// partLen bytes, and readers see all of the entries or none.
func (t *Table) ApplyAll(partHash uint64, partLen int, offs []uint32, seq uint64, keep uint64) {
	s := t.shard(partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	var p *partition
	for i, off := range offs {
		p = s.applyLocked(p, partHash, partLen, off, seq+uint64(i), keep)
	}
}

// locate returns the shard of the entry at off, whose partition it notes in
// last. A log stays in one partition for a while.
func (t *Table) locate(off uint32) *shard {
	key := t.key(off)
	if len(t.last) == 0 || !bytes.HasPrefix(key, t.last) {
		t.last = key[:codec.PartitionLen(key)]
		t.lastHash = codec.PartitionHash(t.last)
	}
	return t.shard(t.lastHash)
}

// Get returns the newest version of key, a user key whose partition has the
// hash partHash, with a sequence number of at most snap. It sets row if that
// version is a put; row then shares the memory of the image.
func (t *Table) Get(key []byte, partHash uint64, snap uint64, row *codec.Row) (seq uint64, kind codec.Kind, ok bool) {
	s := t.shard(partHash)
	s.mu.Lock()
	v, ok := s.getLocked(partHash, key, codec.PartitionLen(key), snap)
	s.mu.Unlock()
	if !ok {
		return 0, 0, false
	}
	kind = codec.Kind(v.trail)
	if kind == codec.KindPut {
		t.setRow(row, v.off)
	}
	return v.trail >> 8, kind, true
}

// Bytes returns about how much memory the index and the shapes take, without
// the image.
func (t *Table) Bytes() int64 { return t.mem.Load() + int64(t.shapes.MemBytes()) }

// Len returns the number of versions that the table holds.
func (t *Table) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.held
		s.mu.Unlock()
	}
	return n
}

func (t *Table) shard(hash uint64) *shard { return &t.shards[hash%shardCount] }

// key returns the user key of the entry at off.
func (t *Table) key(off uint32) []byte { return codec.EntryKey(t.image[off:]) }

// setRow sets row to the put at off.
func (t *Table) setRow(row *codec.Row, off uint32) {
	entry := t.image[off:]
	row.ResetEntry(entry, t.shapes.At(int(codec.EntryShape(entry))-1))
}
