package bulkload

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
)

// unsort notes that a key follows that is not in order.
func (p *part) unsort() {
	if !p.sorted {
		return
	}
	p.sorted, p.unprefixed = false, len(p.rows)
	// The rows so far are sorted, so the first and the last key say what all have in common.
	first, last := codec.EntryKey(p.entry(&p.rows[0])), codec.EntryKey(p.entry(&p.rows[len(p.rows)-1]))
	p.common = codec.CommonLen(first, last)
}

// prefix returns the prefix of key, the next one of a part that is not sorted: the bytes
// after what all keys have in common, in which most differ. So the sort compares few
// entries, which are not in the processor's caches.
func (p *part) prefix(key []byte) [2]uint64 {
	if common := codec.EntryKey(p.entry(&p.rows[0]))[:p.common]; !bytes.HasPrefix(key, common) {
		p.common, p.unprefixed = codec.CommonLen(common, key), len(p.rows)
	}
	return p.prefixOf(key)
}

func (p *part) prefixOf(key []byte) [2]uint64 {
	var b [16]byte
	copy(b[:], key[p.common:])
	return [2]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

// sort sorts the rows by key, and rows with one key by their place in the sequence.
func (p *part) sort() {
	for i := range p.rows[:p.unprefixed] {
		p.rows[i].prefix = p.prefixOf(codec.EntryKey(p.entry(&p.rows[i])))
	}
	slices.SortFunc(p.rows, func(x, y row) int {
		if x.prefix[0] != y.prefix[0] {
			return cmp.Compare(x.prefix[0], y.prefix[0])
		}
		if x.prefix[1] != y.prefix[1] {
			return cmp.Compare(x.prefix[1], y.prefix[1])
		}
		if c := bytes.Compare(codec.EntryKey(p.entry(&x)), codec.EntryKey(p.entry(&y))); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.chunk, y.chunk), cmp.Compare(x.off, y.off))
	})
}
