package bound

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable"
)

// Rows counts the entries of each table of a file. The zero Rows have none. They must not change after
// Tables.Set.
type Rows struct{ list []tableRows }

type tableRows struct {
	id   uint32
	rows uint64
}

// Add adds the next entry of the file.
func (r *Rows) Add(user []byte) {
	id := binary.BigEndian.Uint32(user)
	if n := len(r.list); n > 0 && r.list[n-1].id == id {
		r.list[n-1].rows++
		return
	}
	r.list = append(r.list, tableRows{id, 1})
}

// Tables are the tables that a file has rows of. The zero Tables are not known. They may be used concurrently.
type Tables struct{ rows atomic.Pointer[Rows] }

// Set makes the tables known.
func (t *Tables) Set(r *Rows) { t.rows.Store(r) }

// None reports whether f is false for all of them. lo and hi are the first and the last user key of the file, which is read
// only if f is true for a table between them, or if there are many of them, and the tables are not known. None returns false
// if the file cannot be read.
func (t *Tables) None(lo, hi []byte, open func() (*sstable.Reader, error), f func(id uint32) bool) bool {
	if AllTables(lo, hi, func(id uint32) bool { return !f(id) }) {
		return true
	}
	rows := t.load(open)
	return rows != nil && !slices.ContainsFunc(rows.list, func(r tableRows) bool { return f(r.id) })
}

// Share returns the share of the entries that are of tables for which f is true, 0 if the file cannot be read. The file is
// read as by None, but not if read is set, and sets it.
func (t *Tables) Share(lo, hi []byte, open func() (*sstable.Reader, error), f func(id uint32) bool, read *bool) float64 {
	known := t.rows.Load() != nil
	if !known && *read || AllTables(lo, hi, func(id uint32) bool { return !f(id) }) {
		return 0
	}
	*read = *read || !known
	rows := t.load(open)
	if rows == nil {
		return 0
	}
	n, all := uint64(0), uint64(0)
	for _, r := range rows.list {
		if all += r.rows; f(r.id) {
			n += r.rows
		}
	}
	return float64(n) / float64(max(all, 1))
}

// load returns the tables, nil if they are not known and cannot be read.
func (t *Tables) load(open func() (*sstable.Reader, error)) *Rows {
	rows := t.rows.Load()
	if rows == nil {
		var err error
		if rows, err = tablesOf(open); err != nil {
			return nil
		}
		t.Set(rows)
	}
	return rows
}

// tablesOf seeks once for each table. It counts them as one row each.
func tablesOf(open func() (*sstable.Reader, error)) (*Rows, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	rows := &Rows{}
	it := r.NewIterator(sstable.IterOptions{AllVersions: true})
	for ok := it.SeekGE(nil); ok; {
		rows.Add(it.Key())
		id := binary.BigEndian.Uint32(it.Key())
		ok = id+1 != 0 && it.SeekGE(codec.AppendTable(nil, id+1))
	}
	return rows, it.Close()
}
