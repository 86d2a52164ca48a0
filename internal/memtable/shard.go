package memtable

import (
	"bytes"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
)

// Sizes for the accounting.
const (
	tableBytes     = 32 << 10 // an empty Table
	itemBytes      = 24
	partitionBytes = 48
	versionBytes   = 16
	slotBytes      = 8
)

// shard contains the partitions whose hash modulo shardCount is its index.
type shard struct {
	mu sync.Mutex

	// The hash table of partitions, open addressing. A slot contains the high 32 bits
	// of the hash, whose low bits give the slot, and 1 + the partition's index.
	// +checklocks:mu
	slots []uint64
	// +checklocks:mu
	partitions slab[partition]
	// Arrays of 4, 8, 16 and 32 items, and the indexes of the free ones.
	// +checklocks:mu
	arrays [arrayForms]slab[item]
	// +checklocks:mu
	freeArrays [arrayForms][]uint32
	// +checklocks:mu
	trees []*tree
	// Versions that are not the newest, and 1 + the index of the first free one.
	// +checklocks:mu
	versions slab[version]
	// +checklocks:mu
	freeVersion uint32
	// Number of versions, the newest ones included.
	// +checklocks:mu
	versionCount int
	// Bytes allocated that are not in Table.mem yet.
	// +checklocks:mu
	uncounted int

	table *Table

	_ [64]byte // no two mutexes in one cache line
}

// partition is a partition of a shard. It contains no pointers.
type partition struct {
	one    [1]item // the row of a partition with one row
	off    uint32  // an entry of the partition, for its key and the shared prefix
	rows   uint32  // number of rows
	handle uint32  // index of the array or the tree
	keyLen uint16  // length of the table id and the PartitionKey with its end
	shared uint16  // length of a prefix that all RowKeys share
	form   form
	breaks uint8 // number of times that the prefix of a tree became shorter
}

// version is an older version of a row.
type version struct {
	trail uint64
	off   uint32
	prev  uint32
}

// grew counts n allocated bytes.
// +checklocks:s.mu
func (s *shard) grew(n int) {
	const step = 4096
	if s.uncounted += n; s.uncounted >= step || s.uncounted <= -step {
		s.table.mem.Add(int64(s.uncounted))
		s.uncounted = 0
	}
}

// find returns the partition with the key prefix, which has the given hash, and its
// index.
// +checklocks:s.mu
func (s *shard) find(hash uint64, prefix []byte) (id uint32, p *partition) {
	if len(s.slots) == 0 {
		return 0, nil
	}
	tag, mask := uint32(hash>>32), uint32(len(s.slots)-1)
	for i := tag & mask; ; i = (i + 1) & mask {
		slot := s.slots[i]
		if slot == 0 {
			return 0, nil
		}
		if uint32(slot>>32) != tag {
			continue
		}
		p = s.partitions.at(uint32(slot) - 1)
		if int(p.keyLen) == len(prefix) && bytes.Equal(s.key(p.off)[:p.keyLen], prefix) {
			return uint32(slot) - 1, p
		}
	}
}

// addLocked adds a partition of one row and returns it.
// +checklocks:s.mu
func (s *shard) addLocked(hash uint64, key []byte, keyLen int, it item) *partition {
	if int(s.partitions.n)+1 > len(s.slots)/4*3 {
		s.growSlots()
	}
	id, n := s.partitions.add(1)
	s.grew(n * partitionBytes)
	p := s.partitions.at(id)
	*p = partition{
		one: [1]item{it}, off: it.off, rows: 1, keyLen: uint16(keyLen), shared: uint16(len(key) - keyLen),
	}
	s.setSlot(hash>>32<<32 | uint64(id+1))
	s.table.partitions.Add(1)
	return p
}

// +checklocks:s.mu
func (s *shard) growSlots() {
	const first = 16
	old := s.slots
	s.slots = make([]uint64, max(first, 2*len(old)))
	s.grew((len(s.slots) - len(old)) * slotBytes)
	for _, slot := range old {
		if slot != 0 {
			s.setSlot(slot)
		}
	}
}

// +checklocks:s.mu
func (s *shard) setSlot(slot uint64) {
	mask := uint32(len(s.slots) - 1)
	i := uint32(slot>>32) & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
}

// applyLocked indexes the entry at off and returns its partition. The first keyLen
// bytes of the entry's key are the key of the partition, which has the given hash.
// p is the partition, or nil if the caller does not know it.
// +checklocks:s.mu
func (s *shard) applyLocked(p *partition, hash uint64, keyLen int, off uint32, seq uint64, keep uint64) *partition {
	s.versionCount++
	entry := s.table.image[off:]
	key := codec.EntryKey(entry)
	it := item{trail: seq<<8 | uint64(codec.EntryKind(entry)), off: off}
	if p == nil {
		if _, p = s.find(hash, key[:keyLen]); p == nil {
			return s.addLocked(hash, key, keyLen, it)
		}
	}
	row, shared := key[keyLen:], s.shared(p)
	if !bytes.HasPrefix(row, shared) {
		s.shrink(p, codec.CommonLen(row, shared))
	}
	it.prefix = prefixOf(row[p.shared:])
	s.add(p, it, keep)
	return p
}

// replace returns it as the newest version of the row whose newest version was old.
// It keeps or drops the older versions.
// +checklocks:s.mu
func (s *shard) replace(old, it item, keep uint64) item {
	switch {
	case keep == 0:
		s.versionCount--
		for i := old.prev; i != 0; {
			v := s.versions.at(i - 1)
			next := v.prev
			v.prev, s.freeVersion = s.freeVersion, i
			i = next
			s.versionCount--
		}
	case old.trail>>8 <= keep:
		it.prev = s.keep(version{old.trail, old.off, old.prev})
	default:
		s.versionCount--
		it.prev = old.prev
	}
	return it
}

// keep stores v and returns 1 + its index.
// +checklocks:s.mu
func (s *shard) keep(v version) uint32 {
	i := s.freeVersion
	if i != 0 {
		s.freeVersion = s.versions.at(i - 1).prev
	} else {
		at, n := s.versions.add(1)
		s.grew(n * versionBytes)
		i = at + 1
	}
	*s.versions.at(i - 1) = v
	return i
}

// getLocked returns the newest version of key with a sequence number of at
// most snap.
// +checklocks:s.mu
func (s *shard) getLocked(hash uint64, key []byte, keyLen int, snap uint64) (version, bool) {
	_, p := s.find(hash, key[:keyLen])
	if p == nil {
		return version{}, false
	}
	it, ok := s.row(p, key)
	if !ok {
		return version{}, false
	}
	return s.visible(it, snap)
}

// visible returns the newest version of a row with a sequence number of at
// most snap.
// +checklocks:s.mu
func (s *shard) visible(it item, snap uint64) (version, bool) {
	v := version{it.trail, it.off, it.prev}
	for v.trail>>8 > snap {
		if v.prev == 0 {
			return version{}, false
		}
		v = *s.versions.at(v.prev - 1)
	}
	return v, true
}

// key returns the user key of the entry at off.
func (s *shard) key(off uint32) []byte { return s.table.key(off) }
