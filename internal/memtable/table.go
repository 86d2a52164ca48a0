package memtable

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
)

// shardCount is the number of shards. The low bits of a partition's hash select
// the shard, the high 32 bits the slot in its hash table.
const shardCount = 64

// Table is the index. One goroutine at a time may call AddShape, Apply and
// ApplyAll. All other methods may be called concurrently with them and with each
// other.
type Table struct {
	image      []byte
	shapes     *codec.ShapeList // by id - 1
	mem        atomic.Int64     // bytes allocated
	partitions atomic.Int64     // number of partitions in all shards
	passed     atomic.Int64     // of Passed
	dir        directory

	shards [shardCount]shard
}

// New returns an empty Table over image, the memory of the segment, at most 4 GiB. The
// Table reads it, and never writes to it. The bytes of an applied entry must not change.
func New(image []byte) *Table {
	if uint64(len(image)) > math.MaxUint32 {
		panic("memtable: image larger than 4 GiB")
	}
	t := &Table{image: image, shapes: codec.NewShapeList(image, shapeBudget)}
	t.mem.Store(tableBytes)
	t.dir.init(t) // +checklocksignore: not shared yet
	for i := range t.shards {
		t.shards[i].table = t
	}
	return t
}

// shapeBudget is the number of bytes of decoded shapes that a Table keeps: enough
// for some hundred entities with the maximum number of properties.
const shapeBudget = 4 << 20

// AddShape adds the shape s with the given id. Its definition is the entry at
// image[off:]. Call it before the first entry that uses the id. Ids rise from 1.
func (t *Table) AddShape(id uint16, off uint32, s *codec.Shape) {
	if int(id) != t.shapes.Len()+1 {
		panic(fmt.Sprintf("memtable: shape %d after %d shapes", id, t.shapes.Len()))
	}
	t.shapes.Add(int(off)+codec.EntryHeaderLen, s)
}

// Shape returns the shape with the given id, nil if there is none.
func (t *Table) Shape(id uint16) *codec.Shape {
	if id == 0 || int(id) > t.shapes.Len() {
		return nil
	}
	return t.shapes.At(int(id) - 1)
}

// Shapes returns the number of shapes.
func (t *Table) Shapes() int { return t.shapes.Len() }

// Apply indexes the entry at image[off:], a put or a delete. The sequence numbers
// of a key must rise. keep is the newest sequence number that a registered
// snapshot or a running scan reads. The previous version of the key remains
// readable if its sequence number is at most keep. If keep is 0, Apply drops all
// older versions of the key.
//
// Register a snapshot between two calls, at a sequence number that is not less
// than that of any applied entry. A smaller one could need a version that was
// dropped.
func (t *Table) Apply(off uint32, seq uint64, keep uint64) {
	key := t.key(off)
	partLen := codec.PartitionLen(key)
	hash := codec.PartitionHash(key[:partLen])
	s := t.shard(hash)
	s.mu.Lock()
	s.applyLocked(nil, hash, partLen, off, seq, keep)
	s.mu.Unlock()
}

// ApplyAll applies the entries at offs, with sequence numbers from seq on. All keys
// must be in the partition with the given hash, whose key has keyLen bytes.
// Readers see all of the entries or none.
func (t *Table) ApplyAll(hash uint64, keyLen int, offs []uint32, seq uint64, keep uint64) {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	var p *partition
	for i, off := range offs {
		p = s.applyLocked(p, hash, keyLen, off, seq+uint64(i), keep)
	}
}

// Get returns the newest version of a user key with a sequence number of at most
// snap. hash is the hash of the key's partition. Get sets row if the version is a
// put; row then shares the memory of the image.
func (t *Table) Get(key []byte, hash uint64, snap uint64, row *codec.Row) (seq uint64, kind codec.Kind, ok bool) {
	if t.partitions.Load() == 0 {
		return 0, 0, false // without a lock, as mostly while nobody writes
	}
	s := t.shard(hash)
	s.mu.Lock()
	v, ok := s.getLocked(hash, key, codec.PartitionLen(key), snap)
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

// Bytes returns the approximate memory of the index and the shapes, without the
// image.
func (t *Table) Bytes() int64 { return t.mem.Load() + int64(t.shapes.MemBytes()) }

// Passed returns how many tombstones Iterators that are closed have returned, each as often as
// they did.
func (t *Table) Passed() int64 { return t.passed.Load() }

// Len returns the number of versions in the table.
func (t *Table) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, tree := range s.trees {
			s.insertWaiting(tree)
		}
		n += s.versionCount
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
