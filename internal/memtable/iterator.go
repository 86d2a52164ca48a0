package memtable

import (
	"bytes"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
)

// IterOptions select the rows of an Iterator.
type IterOptions struct {
	// Lower and Upper bound the user keys to [Lower, Upper); nil is open. They must
	// not change while the iterator is in use.
	Lower, Upper []byte
	// Snapshot is the greatest visible sequence number.
	Snapshot uint64
	// AllVersions returns every version in the table, newest first within a key, and
	// ignores Snapshot. Such an iterator moves forward only.
	AllVersions bool
}

// Batches grow, so that a short scan copies few rows and a long scan searches seldom. Where
// the partitions have few rows, a batch is of many partitions, and a merge of a short scan
// needs the first row alone: with a firstBatch of 32, and growth after batches that are not
// full, it needs 20 % more CPU (bench/peers, ycsb/mix=E).
const (
	firstBatch  = 8
	growBatch   = 4
	maxBatch    = 256
	maxExamined = 256 // rows examined while a shard is locked
)

// Iterator returns the rows of a Table in key order, each in its newest version
// with a sequence number of at most Snapshot, tombstones included. It copies a
// batch of rows at a time and holds no lock between calls, so it may run
// concurrently with Apply as long as Apply's keep is at least Snapshot. It belongs
// to one goroutine.
type Iterator struct {
	t       *Table
	o       IterOptions
	reverse bool
	done    bool // the batch is the last

	batch []ref // in the order of the iteration
	i     int   // the current one
	limit int   // length of the next batch

	// The current partition. If more is set it may have more rows: the next one is
	// at from, or after from if skip is set.
	partition partitionRef
	more      bool
	from      []byte
	skip      bool
	bounded   bool // the bound of the iteration is in the partition

	// While the shard is locked: whether rows are compared with the bound, the
	// prefix of the bound, and the number of rows examined.
	check    bool
	bound    uint64
	examined int

	// The next partitions. The ones that follow them are in the directory, at
	// dirFrom, or after dirFrom if dirSkip is set.
	queue   []partitionRef
	qi      int
	dirFrom []byte
	dirSkip bool

	addRowFunc func(item) bool // addRow; made once

	row    codec.Row
	key    []byte
	seek   []byte
	passed int64 // tombstones that Row was called at
	read   byte  // of readAhead, which the compiler would remove otherwise
}

// ref is a version that the iterator returns.
type ref struct {
	trail  uint64
	off    uint32
	keyLen uint16
}

// NewIterator returns an iterator that must seek before it moves.
func (t *Table) NewIterator(o IterOptions) *Iterator {
	it := &Iterator{}
	it.Init(t, o)
	return it
}

// Init prepares an Iterator that is zero or closed for use, as NewIterator does. It uses
// the memory of it again. An Iterator must not be copied.
func (it *Iterator) Init(t *Table, o IterOptions) {
	it.t, it.o = t, o
	if it.addRowFunc == nil {
		it.addRowFunc = it.addRow
	}
}

// SeekGE moves to the first row whose key is at least key.
func (it *Iterator) SeekGE(key []byte) bool {
	if bytes.Compare(key, it.o.Lower) < 0 {
		key = it.o.Lower
	}
	it.start(false)
	if it.o.Upper != nil && bytes.Compare(key, it.o.Upper) >= 0 {
		return false
	}
	n := codec.PartitionLen(key)
	it.dirFrom, it.dirSkip = key, n > 0
	if n > 0 {
		it.dirFrom = key[:n:n]
		it.find(key)
	}
	return it.fill()
}

// SeekLT moves to the last row whose key is less than key, or to the last row if
// key is nil.
func (it *Iterator) SeekLT(key []byte) bool {
	if it.o.AllVersions {
		panic("memtable: an iterator of all versions moves forward only")
	}
	if it.o.Upper != nil && (key == nil || bytes.Compare(key, it.o.Upper) > 0) {
		key = it.o.Upper
	}
	it.start(true)
	if key != nil && bytes.Compare(key, it.o.Lower) <= 0 {
		return false
	}
	it.dirFrom, it.dirSkip = key, true
	switch n := codec.PartitionLen(key); {
	case n > 0:
		it.dirFrom = key[:n:n]
		it.find(key)
	case codec.IsPartitionEnd(key):
		// The rows of that partition, if any, are the next lower ones.
		it.seek = codec.AppendPartitionOfEnd(it.seek[:0], key)
		it.dirFrom = it.seek
		if it.find(it.seek) {
			it.from = nil
		}
	}
	return it.fill()
}

// Next moves to the next row.
func (it *Iterator) Next() bool {
	if !it.Valid() {
		return false
	}
	if it.reverse {
		it.seek = append(append(it.seek[:0], it.userKey()...), 0)
		return it.SeekGE(it.seek)
	}
	if it.i++; it.i < len(it.batch) {
		return true
	}
	return it.fill()
}

// Prev moves to the previous row.
func (it *Iterator) Prev() bool {
	if !it.Valid() {
		return false
	}
	if !it.reverse {
		return it.SeekLT(it.userKey())
	}
	if it.i++; it.i < len(it.batch) {
		return true
	}
	return it.fill()
}

// Valid reports whether the iterator is at a row.
func (it *Iterator) Valid() bool { return it.i < len(it.batch) }

// Key returns the internal key of the current row, valid until the iterator
// moves.
func (it *Iterator) Key() []byte {
	r := &it.batch[it.i]
	it.key = append(it.key[:0], it.userKey()...)
	it.key = codec.AppendTrailer(it.key, r.trail>>8, codec.Kind(r.trail))
	return it.key
}

// Row returns the current row, nil for a tombstone, valid until the iterator
// moves. The bytes of its values are bytes of the image.
func (it *Iterator) Row() codec.ShapedRow {
	r := &it.batch[it.i]
	if codec.Kind(r.trail) != codec.KindPut {
		it.passed++
		return nil
	}
	it.t.setRow(&it.row, r.off)
	return &it.row
}

// Err returns nil: an Iterator cannot fail.
func (it *Iterator) Err() error { return nil }

// Close ends the use of the iterator.
func (it *Iterator) Close() error {
	if it.passed > 0 {
		it.t.passed.Add(it.passed)
		it.passed = 0
	}
	it.batch, it.queue, it.i = it.batch[:0], it.queue[:0], 0
	it.t, it.o, it.from, it.dirFrom, it.row = nil, IterOptions{}, nil, nil, codec.Row{}
	return nil
}

func (it *Iterator) userKey() []byte {
	r := &it.batch[it.i]
	return it.t.image[r.off+codec.EntryHeaderLen:][:r.keyLen]
}

// start resets the position of the iterator.
func (it *Iterator) start(reverse bool) {
	it.reverse, it.done, it.more, it.skip = reverse, false, false, false
	it.batch, it.i, it.limit = it.batch[:0], 0, firstBatch
	it.queue, it.qi = it.queue[:0], 0
}

// find makes the partition of key the current one, from key on, and reports whether
// it exists. So a scan within one partition does not use the directory.
func (it *Iterator) find(key []byte) bool {
	prefix := key[:codec.PartitionLen(key)]
	hash := codec.PartitionHash(prefix)
	s := it.t.shard(hash)
	s.mu.Lock()
	id, p := s.find(hash, prefix)
	var at partitionRef
	if p != nil {
		at = partitionRef{off: p.off, id: id*shardCount + uint32(hash%shardCount), keyLen: p.keyLen}
	}
	s.mu.Unlock()
	if p == nil {
		return false
	}
	it.enter(at)
	it.from, it.skip = key, it.reverse
	it.dirFrom = it.t.partitionKey(at)
	return true
}

// enter makes p the current partition, from its first row in the order of the
// iteration.
func (it *Iterator) enter(p partitionRef) {
	bound := it.o.Upper
	if it.reverse {
		bound = it.o.Lower
	}
	it.partition, it.more, it.from, it.skip = p, true, nil, false
	it.bounded = bytes.HasPrefix(bound, it.t.partitionKey(p))
}

// fill reads the next batch and moves to its first row.
func (it *Iterator) fill() bool {
	it.batch, it.i = slices.Grow(it.batch[:0], it.limit), 0
	for len(it.batch) < it.limit && !it.done {
		if it.more {
			it.readRows()
			continue
		}
		if it.qi == len(it.queue) && (len(it.batch) > 0 || !it.readPartitions()) {
			break // the caller may not need the next partitions
		}
		p := it.queue[it.qi]
		it.qi++
		if it.beyond(p) {
			it.done = true
			break
		}
		it.enter(p)
	}
	// Read the key lengths here: these loads do not wait for each other.
	for i := range it.batch {
		r := &it.batch[i]
		r.keyLen = uint16(codec.EntryKeyLen(it.t.image[r.off:]))
	}
	if it.o.AllVersions {
		it.readAhead()
	}
	if len(it.batch) >= it.limit {
		it.limit = min(it.limit*growBatch, maxBatch)
	}
	return len(it.batch) > 0
}

// readAhead touches the rows of the batch. A flush needs all of them, and those of a random
// load are in random order. BenchmarkFlush in random order needs a third less CPU, 100 ns a
// row, which is 3 % of a load.
func (it *Iterator) readAhead() {
	const near = 4096
	last := uint32(0)
	for i := range it.batch {
		off := it.batch[i].off
		if off-last < near { // the processor reads ahead by itself
			last = off
			continue
		}
		last = off
		it.read |= codec.TouchEntry(it.t.image[off:])
	}
}

// beyond reports whether all rows of p are beyond the bound.
func (it *Iterator) beyond(p partitionRef) bool {
	if it.reverse {
		key := it.t.partitionKey(p)
		return bytes.Compare(key, it.o.Lower) < 0 && !bytes.HasPrefix(it.o.Lower, key)
	}
	return it.o.Upper != nil && bytes.Compare(it.t.partitionKey(p), it.o.Upper) >= 0
}

// readRows copies rows of the current partition.
func (it *Iterator) readRows() {
	s := &it.t.shards[it.partition.id%shardCount]
	it.more, it.examined = false, 0
	s.mu.Lock()
	p := s.partitions.at(it.partition.id / shardCount)
	if it.within(s, p) {
		if it.reverse {
			s.descend(p, it.from, it.addRowFunc)
		} else {
			s.ascend(p, it.from, it.addRowFunc)
		}
	}
	s.mu.Unlock()
}

// within reports whether rows of p can be within the bound, and prepares addRow to
// compare them with it.
func (it *Iterator) within(s *shard, p *partition) bool {
	it.check = false
	if !it.bounded {
		return true
	}
	prefix, where := uint64(0), 0
	if it.reverse {
		prefix, where = s.prefixFor(p, it.o.Lower)
		where = -where
	} else {
		prefix, where = s.prefixFor(p, it.o.Upper)
	}
	it.check, it.bound = where == 0, prefix
	return where >= 0
}

// addRow adds a row of the current partition, whose shard is locked, and reports
// whether it needs more.
// +checklocksignore
func (it *Iterator) addRow(x item) bool {
	if it.skip {
		it.skip = false
		if bytes.Equal(it.t.key(x.off), it.from) {
			return true
		}
	}
	if it.check && it.outside(x) {
		return false
	}
	s := &it.t.shards[it.partition.id%shardCount]
	if it.o.AllVersions {
		it.addVersions(s, x)
	} else if v, ok := s.visible(x, it.o.Snapshot); ok {
		it.batch = append(it.batch, ref{trail: v.trail, off: v.off})
	}
	if it.examined++; it.examined < maxExamined && len(it.batch) < it.limit {
		return true
	}
	it.more, it.from, it.skip = true, it.t.key(x.off), true
	return false
}

// addVersions adds all versions of a row.
// +checklocks:s.mu
func (it *Iterator) addVersions(s *shard, x item) {
	it.batch = append(it.batch, ref{trail: x.trail, off: x.off})
	for i := x.prev; i != 0; {
		v := s.versions.at(i - 1)
		it.batch = append(it.batch, ref{trail: v.trail, off: v.off})
		i = v.prev
	}
}

// outside reports whether x is beyond the bound.
func (it *Iterator) outside(x item) bool {
	if it.reverse {
		if x.prefix != it.bound {
			return x.prefix < it.bound
		}
		return bytes.Compare(it.t.key(x.off), it.o.Lower) < 0
	}
	if x.prefix != it.bound {
		return x.prefix > it.bound
	}
	return bytes.Compare(it.t.key(x.off), it.o.Upper) >= 0
}

// readPartitions reads the next partitions from the directory and reports whether
// there are any.
func (it *Iterator) readPartitions() bool {
	it.queue, it.qi = it.queue[:0], 0
	if it.lastPartition() {
		it.done = true
		return false
	}
	n := it.limit
	if it.dirSkip {
		n++
	}
	if it.reverse {
		it.queue = it.t.dir.descend(it.queue, it.dirFrom, n)
	} else {
		it.queue = it.t.dir.ascend(it.queue, it.dirFrom, n)
	}
	if len(it.queue) > 0 && bytes.Equal(it.t.partitionKey(it.queue[0]), it.dirFrom) {
		it.qi = 1
	}
	if it.qi == len(it.queue) {
		it.done = true
		return false
	}
	it.dirFrom, it.dirSkip = it.t.partitionKey(it.queue[len(it.queue)-1]), true
	return true
}

// lastPartition reports whether the bounds exclude every partition beyond
// dirFrom.
func (it *Iterator) lastPartition() bool {
	if it.reverse {
		return it.dirFrom != nil && bytes.Compare(it.o.Lower, it.dirFrom) >= 0
	}
	if !it.dirSkip {
		return false
	}
	n := len(it.dirFrom)
	return bytes.HasPrefix(it.o.Upper, it.dirFrom) ||
		len(it.o.Upper) == n && codec.IsPartitionEnd(it.o.Upper) && bytes.Equal(it.o.Upper[:n-1], it.dirFrom[:n-1])
}
