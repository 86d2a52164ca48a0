package bound

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable"
)

// Tables are the ids of the tables that a file has rows of. They are read at the first use. They
// may be used concurrently.
type Tables struct{ ids atomic.Pointer[[]uint32] }

// None reports whether f is false for all of them. lo and hi are the first and the last user key of
// the file, which is read only if f is true for a table between them, or if there are many of them.
// None returns false if the file cannot be read.
func (t *Tables) None(lo, hi []byte, open func() (*sstable.Reader, error), f func(id uint32) bool) bool {
	if AllTables(lo, hi, func(id uint32) bool { return !f(id) }) {
		return true
	}
	ids := t.ids.Load()
	if ids == nil {
		list, err := tablesOf(open)
		if err != nil {
			return false
		}
		ids = &list
		t.ids.Store(ids)
	}
	return !slices.ContainsFunc(*ids, f)
}

// tablesOf seeks once for each table.
func tablesOf(open func() (*sstable.Reader, error)) (ids []uint32, err error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	it := r.NewIterator(sstable.IterOptions{AllVersions: true})
	for ok := it.SeekGE(nil); ok; {
		id := binary.BigEndian.Uint32(it.Key())
		ids = append(ids, id)
		ok = id+1 != 0 && it.SeekGE(codec.AppendTable(nil, id+1))
	}
	return ids, it.Close()
}
