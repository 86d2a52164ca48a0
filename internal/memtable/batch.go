package memtable

import "github.com/tablerock-db/tablerock/codec"

// ApplyAll is Apply of the entries at offs, with sequence numbers from seq on.
// Their keys are in one partition, and readers see all of the entries or none.
func (t *Table) ApplyAll(offs []uint32, seq uint64, keep uint64) {
	key := codec.EntryKey(t.image[offs[0]:])
	n := codec.PartitionLen(key)
	hash := codec.PartitionHash(key[:n])
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, off := range offs {
		entry := t.image[off:]
		it := item{trail: (seq+uint64(i))<<8 | uint64(codec.EntryKind(entry)), off: off}
		s.applyLocked(uint32(hash>>32), codec.EntryKey(entry), n, it, keep)
	}
}
