package sstable

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Iterator walks over the entries of a file. Unless all versions were asked
// for, it shows one version of each user key, the newest whose sequence is not
// greater than the snapshot, tombstones included. It is not safe for concurrent
// use. A step does not allocate.
type Iterator struct {
	r *Reader
	o IterOptions
	// The bounds as groups: rows before lowest are less than Lower, rows behind
	// highest are not less than Upper.
	lowest, highest int

	pruner *rowgroup.Pruner // nil: nothing is left out

	g     int
	h     *rowgroup.Head
	row   int
	first int  // rows of h within the bounds
	limit int  // and the end of these
	plain bool // every row of h is visible, and each is the only one of its key
	valid bool
	err   error

	viewed bool // view is the current row
	view   Row

	keyed  bool // key is the current key
	key    []byte
	prefix int // bytes of key that belong to stretch rows from..to
	from   int
	to     int
}

// NewIterator returns an Iterator that stands nowhere. It keeps the bounds.
func (r *Reader) NewIterator(o IterOptions) *Iterator {
	if o.AllVersions {
		o.Snapshot = codec.MaxSeq
	}
	it := &Iterator{r: r, o: o, g: -1, highest: len(r.index.groups)}
	if o.Lower != nil {
		it.lowest = r.index.seek(o.Lower)
	}
	if o.Upper != nil {
		it.highest = r.index.seek(o.Upper)
	}
	it.view.pins.r, it.view.pins.fill = r, o.Fill
	if o.Prune != nil {
		s, err := r.loadBounds()
		if err != nil {
			it.err = err
			return it
		}
		it.pruner = s.NewPruner(o.Prune)
	}
	return it
}

// SeekGE moves to the first entry whose user key is not less than key.
func (it *Iterator) SeekGE(key []byte) bool {
	if !it.restart() {
		return false
	}
	if bytes.Compare(key, it.o.Lower) < 0 {
		key = it.o.Lower
	}
	if !it.load(it.r.index.seek(key)) {
		return false
	}
	row, _ := it.h.Seek(key)
	it.row = row - 1
	return it.advance() && it.findForward(false)
}

// SeekLT moves to the last entry whose user key is less than key, or with nil
// to the last of all.
func (it *Iterator) SeekLT(key []byte) bool {
	if !it.restart() {
		return false
	}
	if it.o.AllVersions {
		it.err = errForwardOnly
		return false
	}
	if key == nil || it.o.Upper != nil && bytes.Compare(key, it.o.Upper) > 0 {
		key = it.o.Upper
	}
	if key == nil {
		if !it.load(len(it.r.index.groups) - 1) {
			return false
		}
		it.row = it.limit
	} else {
		if !it.load(it.r.index.seek(key)) {
			return false
		}
		it.row, _ = it.h.Seek(key)
	}
	return it.retreat() && it.findBackward()
}

// Next moves to the following entry.
func (it *Iterator) Next() bool {
	if !it.valid || it.view.Err() != nil {
		return it.fail()
	}
	it.viewed, it.keyed = false, false
	if it.plain && it.row+1 < it.limit {
		it.row++
		return true
	}
	it.valid = false
	if !it.advance() {
		return false
	}
	return it.findForward(it.sameAsBefore())
}

// Prev moves to the entry before.
func (it *Iterator) Prev() bool {
	if !it.valid || it.view.Err() != nil {
		return it.fail()
	}
	it.viewed, it.keyed = false, false
	if it.plain && it.row > it.first && !it.o.AllVersions {
		it.row--
		return true
	}
	it.valid = false
	if it.o.AllVersions {
		it.err = errForwardOnly
		return false
	}
	for it.sameAsBefore() {
		if !it.retreat() {
			return false
		}
	}
	return it.retreat() && it.findBackward()
}

// Valid reports whether the iterator stands at an entry.
func (it *Iterator) Valid() bool { return it.valid }

// Err returns the error that ended the last move.
func (it *Iterator) Err() error {
	if it.err == nil {
		return it.view.Err()
	}
	return it.err
}

// Close releases what the iterator pins and returns Err.
func (it *Iterator) Close() error {
	err := it.Err()
	it.unload()
	it.valid = false
	return err
}

// Key returns the internal key, valid until the iterator moves.
func (it *Iterator) Key() []byte {
	if it.keyed {
		return it.key
	}
	h := it.h
	if it.row < it.from || it.row >= it.to {
		it.key, it.from, it.to = h.AppendPrefix(it.key[:0], it.row)
		it.prefix = len(it.key)
	}
	seq, kind := h.Version(it.row)
	it.key = codec.AppendTrailer(h.AppendSuffix(it.key[:it.prefix], it.row), seq, kind)
	it.keyed = true
	return it.key
}

// Row returns the row, nil for a tombstone; it and its values are valid until
// the iterator moves.
func (it *Iterator) Row() codec.ShapedRow {
	if it.h.Tombstone(it.row) {
		return nil
	}
	return &it.View().Row
}

// View is Row for an entry that is no tombstone.
func (it *Iterator) View() *Row {
	if !it.viewed {
		it.view.pins.releaseValueBlocks()
		it.view.Set(it.row)
		it.viewed = true
	}
	return &it.view
}

// Sequence and kind of the entry.
func (it *Iterator) Version() (seq uint64, kind codec.Kind) { return it.h.Version(it.row) }

// restart prepares for a seek.
func (it *Iterator) restart() bool {
	it.valid, it.viewed, it.keyed = false, false, false
	return it.Err() == nil && len(it.r.index.groups) > 0
}

func (it *Iterator) fail() bool {
	it.valid = false
	if it.err == nil {
		it.err = it.view.Err()
	}
	return false
}

func (it *Iterator) unload() {
	if it.err == nil {
		it.err = it.view.Err()
	}
	it.view.Release()
	it.h, it.g = nil, -1
	it.from, it.to = 0, 0
}

// following returns the next group in a direction, 1 or -1, that may hold
// something; -1 when there is none.
func (it *Iterator) following(step int) int {
	for g := it.g + step; g >= it.lowest && g <= it.highest && g < len(it.r.index.groups); g += step {
		if it.pruner == nil || !it.prunable(g) || !it.pruner.None(g) {
			return g
		}
	}
	return -1
}

// prunable reports whether the versions of each key of g are in g alone. A
// group that is left out must not take a newer version away from an older one.
func (it *Iterator) prunable(g int) bool {
	all := it.r.index.groups
	return !all[g].continues && (g+1 == len(all) || !all[g+1].continues)
}

// load makes g the current group, unless there is none with that number.
func (it *Iterator) load(g int) bool {
	if g < 0 {
		return false
	}
	if g == it.g {
		return true
	}
	it.unload()
	h, pin, err := it.r.head(g, it.o.Fill)
	if err != nil {
		it.err = err
		return false
	}
	it.g, it.h = g, &h.Head
	it.view.pins.head, it.view.pins.hints = pin, h.hints
	it.view.Attach(&h.Head, &it.view.pins)
	it.first, it.limit = 0, h.Rows()
	if g <= it.lowest && it.o.Lower != nil {
		it.first, _ = h.Seek(it.o.Lower)
	}
	if g >= it.highest {
		it.limit, _ = h.Seek(it.o.Upper)
	}
	it.plain = it.o.AllVersions || !h.Versions() && h.MaxSeq <= it.o.Snapshot && !it.r.index.groups[g].continues
	return true
}

// advance moves one row forward, within the bounds.
func (it *Iterator) advance() bool {
	it.row++
	for it.row >= it.limit {
		if it.limit < it.h.Rows() || !it.load(it.following(1)) {
			return false
		}
		it.row = it.first
	}
	return true
}

// retreat moves one row backward, within the bounds.
func (it *Iterator) retreat() bool {
	it.row--
	for it.row < it.first {
		if it.first > 0 || !it.load(it.following(-1)) {
			return false
		}
		it.row = it.limit - 1
	}
	return true
}

// sameAsBefore reports whether the row before has the same user key.
func (it *Iterator) sameAsBefore() bool {
	if it.row == 0 {
		return it.r.index.groups[it.g].continues
	}
	return it.h.Same(it.row)
}

// findForward stops at the first row from here on that is to be shown. done
// says that a newer version of the same key has been.
func (it *Iterator) findForward(done bool) bool {
	for done && !it.o.AllVersions || it.h.Sequence(it.row) > it.o.Snapshot {
		if !it.advance() {
			return false
		}
		done = done && it.sameAsBefore()
	}
	it.valid = true
	return true
}

// findBackward stops at the row to be shown of the key whose oldest version is
// here, or of the nearest key before that has one.
func (it *Iterator) findBackward() bool {
	for {
		g, row := -1, 0
		for {
			if it.h.Sequence(it.row) <= it.o.Snapshot {
				g, row = it.g, it.row
			}
			if !it.sameAsBefore() {
				break
			}
			if !it.retreat() {
				return false
			}
		}
		if g >= 0 {
			if !it.load(g) {
				return false
			}
			it.row, it.valid = row, true
			return true
		}
		if !it.retreat() {
			return false
		}
	}
}
