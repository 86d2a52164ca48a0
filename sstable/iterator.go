package sstable

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/columnchunk"
	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
	"github.com/tablerock-db/tablerock/sstable/internal/selection"
)

// Iterator iterates over the entries of a file. Without AllVersions it shows one
// version of each user key: the newest whose sequence number is at most Snapshot,
// tombstones included. It is not safe for concurrent use. A step does not allocate.
type Iterator struct {
	r *Reader
	o IterOptions
	// lowest and highest are the groups of Lower and Upper: rows before lowest are
	// less than Lower, rows after highest are not less than Upper. They are -1 and the
	// number of groups if all rows are within that bound.
	lowest, highest int

	pruner *groupbounds.Pruner // nil: Excludes reports false
	bounds cache.Handle        // of pruner

	g     int
	h     *rowgroup.Head
	row   int
	first int // rows first to limit-1 of h are within the bounds
	limit int
	plain bool // every row of h is visible and the only one of its key
	valid bool
	err   error

	viewed bool // view is set to the current row
	view   Row

	keyed  bool // key is set to the current key
	key    []byte
	prefix int // length of the prefix in key, which rows from to to-1 share
	from   int
	to     int

	// These fields come last: a step of a walk needs those before them.
	selected predicate.Bits // rows of h that NextSelected moves to
	span     *Span          // of the last Select
	window   *Window
	begin    int // the groups of span in window are begin to end-1
	end      int
	group    int            // that selected is rows of
	none     bool           // no row of group is selected
	matched  int            // the group of the next five, -1 if none
	matches  predicate.Bits // rows that the program of Select selects
	found    int            // how many these are
	seen     int            // rows that it selected from: those that the snapshot sees
	whole    bool           // it selected from all rows of the group, without its head
	matchEnd []byte         // else from those before this Window.End
	counted  int            // the group whose rows Select has counted, -1 if none
	cut      selection.Cut
	judged   [2]int // the first group and the end of those that excluded is for; the first is -1 if there are none
	excluded bool   // by pruner
	chunks   columnchunk.Set
}

// NewIterator returns an Iterator without a position. It keeps the bounds in o.
func (r *Reader) NewIterator(o IterOptions) *Iterator {
	it := &Iterator{}
	it.Init(r, o)
	return it
}

// Init prepares an Iterator that is zero or closed for use, as NewIterator does. It reuses
// the memory of a closed one. An Iterator must not be copied.
func (it *Iterator) Init(r *Reader, o IterOptions) {
	if o.AllVersions {
		o.Snapshot = codec.MaxSeq
	}
	it.r, it.o, it.g, it.err, it.view.pins.missed = r, o, -1, nil, false
	it.matched, it.counted, it.judged[0] = -1, -1, -1
	it.cut.Reset()
	x := &r.index
	it.lowest, it.highest = -1, len(x.Groups)
	if len(x.Groups) > 0 && bytes.Compare(o.Lower, codec.UserKey(x.Smallest)) > 0 {
		it.lowest = x.Seek(o.Lower)
	}
	if len(x.Groups) > 0 && o.Upper != nil && bytes.Compare(o.Upper, codec.UserKey(x.Largest)) <= 0 {
		it.highest = x.Seek(o.Upper)
	}
	it.view.pins.r, it.view.pins.fill = r, o.Fill
	if o.Prune != nil && r.prunable(max(it.lowest, 0), min(it.highest+1, len(x.Groups))) {
		it.prune()
	}
}

// prune reads the bounds.
func (it *Iterator) prune() {
	s, pin, err := it.r.loadBounds(it.o.Fill)
	if err != nil {
		it.err = err
		return
	}
	it.bounds = pin
	it.pruner = s.NewPruner(it.o.Prune)
}

// SeekGE moves to the first entry whose user key is not less than key. Init and load have sought the
// lower bound: to seek it again would take short queries of eight runs 8 % of their CPU (bench,
// BenchmarkShortQuery).
func (it *Iterator) SeekGE(key []byte) bool {
	if !it.restart() {
		return false
	}
	if bytes.Compare(key, it.o.Lower) <= 0 {
		if !it.load(max(it.lowest, 0)) {
			return false
		}
		it.row = it.first - 1
		return it.advance() && it.findForward(false)
	}
	if !it.load(it.r.index.Seek(key)) {
		return false
	}
	row, _ := it.h.Seek(key)
	it.row = row - 1
	return it.advance() && it.findForward(false)
}

// SeekLT moves to the last entry whose user key is less than key, or to the last of
// all if key is nil. Like SeekGE, it does not seek the bound again.
func (it *Iterator) SeekLT(key []byte) bool {
	if !it.restart() {
		return false
	}
	if it.o.AllVersions {
		it.err = errForwardOnly
		return false
	}
	if key == nil || it.o.Upper != nil && bytes.Compare(key, it.o.Upper) >= 0 {
		if !it.load(min(it.highest, len(it.r.index.Groups)-1)) {
			return false
		}
		it.row = it.limit
		return it.retreat() && it.findBackward()
	}
	if !it.load(it.r.index.Seek(key)) {
		return false
	}
	it.row, _ = it.h.Seek(key)
	return it.retreat() && it.findBackward()
}

// Next moves to the next entry.
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

// Prev moves to the previous entry.
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
	return it.retreat() && it.findBackward() // newer versions of the key are not visible
}

// Valid reports whether the iterator is at an entry.
func (it *Iterator) Valid() bool { return it.valid }

// Err returns the error that ended the last move.
func (it *Iterator) Err() error {
	if it.err == nil {
		return it.view.Err()
	}
	return it.err
}

// Close releases the pinned blocks and returns Err.
func (it *Iterator) Close() error {
	err := it.Err()
	it.unload()
	it.chunks.Close()
	it.bounds.Release()
	it.bounds, it.pruner = cache.Handle{}, nil
	it.valid = false
	it.r, it.view.pins.r, it.o, it.span, it.window = nil, nil, IterOptions{}, nil, nil
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

// Row returns the row, nil for a tombstone. The row and its values are valid until the
// iterator moves.
func (it *Iterator) Row() codec.ShapedRow {
	if it.h.Tombstone(it.row) {
		return nil
	}
	if !it.viewed {
		it.view.Set(it.row)
		it.viewed = true
	}
	return &it.view.Row
}

// Version returns the sequence number and the kind of the entry.
func (it *Iterator) Version() (seq uint64, kind codec.Kind) { return it.h.Version(it.row) }

// Ahead implements merge.Ahead for the entries of the current group.
func (it *Iterator) Ahead(key []byte, reverse bool) int {
	if !it.plain {
		return 0
	}
	first, limit := it.first, it.limit
	if key != nil {
		row, equal := it.h.Seek(key)
		limit = min(limit, row)
		if equal {
			row++
		}
		first = max(first, row)
	}
	if reverse {
		return max(it.row-first, 0)
	}
	return max(limit-1-it.row, 0)
}

// restart prepares for a seek.
func (it *Iterator) restart() bool {
	it.valid, it.viewed, it.keyed = false, false, false
	it.counted = -1 // a walk counts its rows itself
	return it.Err() == nil
}

func (it *Iterator) fail() bool {
	it.valid = false
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

// load makes g the current group. It reports false if g is no group within the bounds, or
// cannot be read.
func (it *Iterator) load(g int) bool { return it.loadFor(g, scanUses) }

// loadFor is load that counts as the given number of uses of the head by rows.
func (it *Iterator) loadFor(g int, uses uint32) bool {
	if g < max(it.lowest, 0) || g > it.highest || g == len(it.r.index.Groups) {
		return false
	}
	if g == it.g {
		return true
	}
	it.unload()
	// A scan that reads values reads those of most groups, and one read of a group
	// costs less than one of each section: with a cache of 32 MiB, a scan needs 0.01
	// reads a row instead of 0.05 (bench, scan/range=table/cache=32MiB).
	h, pin, stored, err := it.r.headByRows(g, nil, it.view.pins.missed, it.o.Fill, uses)
	if err != nil {
		it.err = err
		return false
	}
	it.g, it.h = g, &h.Head
	it.view.pins.hold(it.r, h, pin, stored)
	it.view.pins.missed = false
	it.view.Attach(&h.Head, &it.view.pins)
	it.first, it.limit = 0, h.Rows()
	if g <= it.lowest {
		it.first, _ = h.Seek(it.o.Lower)
	}
	if g >= it.highest {
		it.limit, _ = h.Seek(it.o.Upper)
	}
	it.plain = it.o.AllVersions || !h.Versions() && h.MaxSeq <= it.o.Snapshot && !it.r.index.Groups[g].Continues
	return true
}

// advance moves one row forward, within the bounds.
func (it *Iterator) advance() bool {
	it.row++
	for it.row >= it.limit {
		if it.limit < it.h.Rows() || !it.load(it.g+1) {
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
		if it.first > 0 || !it.load(it.g-1) {
			return false
		}
		it.row = it.limit - 1
	}
	return true
}

// sameAsBefore reports whether the row before has the same user key.
func (it *Iterator) sameAsBefore() bool {
	if it.row == 0 {
		return it.r.index.Groups[it.g].Continues
	}
	return it.h.Same(it.row)
}

// findForward stops at the first row from the current one on that is visible. done
// means that a newer version of the same key has been shown.
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

// findBackward stops at the visible version of the current key, whose oldest version
// is the current row, or of the nearest key before it that has one.
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
