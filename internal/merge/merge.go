// Package merge implements a k-way merge of sorted sources.
//
// Keys are internal keys: a user key and a trailer, which is smaller for a newer
// version. No user key is a prefix of another, so bytes.Compare of internal keys
// orders by user key, and the versions of a user key newest first.
package merge

import (
	"bytes"
	"errors"

	"github.com/tablerock-db/tablerock/codec"
)

// Source is a sorted list of entries. An Iterator is a Source too. A Source
// belongs to one goroutine.
type Source interface {
	// SeekGE moves to the first entry whose user key is >= key.
	SeekGE(key []byte) bool
	// SeekLT moves to the last entry whose user key is < key; nil is the end.
	SeekLT(key []byte) bool
	// Next moves to the next entry, after a Seek. Beyond either end only a Seek
	// makes the source valid again.
	Next() bool
	// Prev moves to the previous entry, under the same rules as Next.
	Prev() bool
	// Valid reports whether the source is at an entry.
	Valid() bool
	// Key returns the internal key, valid until the source moves.
	Key() []byte
	// Row returns the row, nil for a tombstone, valid until the source moves.
	Row() codec.ShapedRow
	// Err returns why a move returned false, nil at the end of the entries.
	Err() error
	// Close releases the resources of the source.
	Close() error
}

// Ahead is an optional interface of a Source.
type Ahead interface {
	// Ahead returns how many entries that follow the current one have user keys less than
	// key, or with reverse greater than key, as far as the source knows without a read. A
	// nil key is no limit. The user keys of these entries differ from each other and from
	// the current one.
	Ahead(key []byte, reverse bool) int
}

// Options select the entries of an Iterator.
type Options struct {
	// AllVersions returns every entry of every source, forward only, for a
	// compaction. By default each source returns at most one version of a user
	// key, and the Iterator returns the newest of these.
	AllVersions bool
}

// Iterator merges its sources. It belongs to one goroutine. A step allocates only
// to grow a buffer to the length of the longest key.
//
// With more than one source it is a tree of losers (Knuth, The Art of Computer
// Programming, 5.4.1). An inner node records the source that lost the comparison
// there, so a step repeats the comparisons on one path from a leaf to the root.
type Iterator struct {
	sources []Source
	keys    [][]byte // keys[i] is the key of sources[i], nil beyond its end
	tree    []int32  // tree[0] is the winner, tree[1:] are the losers
	user    []byte   // user key of the entry that a step started from
	err     error
	all     bool
	reverse bool

	wins  int  // steps of the winner in a row
	ahead int  // so many entries of the winner follow before those of other sources
	stale bool // the key of the winner is not in keys
}

const (
	// aheadAfter is after how many steps in a row the winner is asked for entries ahead of
	// the other sources. Each of these then needs no key. That saves 12 % of the CPU of a
	// query of 50 rows with a hundredth of them in a memtable (bench, BenchmarkShortQuery).
	aheadAfter = 3
	// If there are fewer than minAhead, the winner is asked later.
	minAhead   = 8
	aheadLater = 32
)

// Init prepares an Iterator for use, or for reuse with its memory. The Iterator
// owns sources until Close. Of two entries with the same internal key, the entry
// of the earlier source comes first. Init does not close the sources of a
// previous Init.
func (it *Iterator) Init(sources []Source, o Options) {
	it.sources = sources
	it.all = o.AllVersions
	it.err = nil
	it.wins, it.ahead, it.stale = 0, 0, false
	n := len(sources)
	if cap(it.tree) < n {
		it.keys, it.tree = make([][]byte, n), make([]int32, n)
	}
	it.keys, it.tree = it.keys[:n], it.tree[:n]
	clear(it.keys)
	clear(it.tree)
}

// SeekGE moves to the first entry whose user key is >= key.
func (it *Iterator) SeekGE(key []byte) bool {
	if len(it.sources) == 1 {
		return it.sources[0].SeekGE(key)
	}
	it.err = nil
	it.reverse = false
	for i, s := range it.sources {
		it.moved(i, s.SeekGE(key))
	}
	return it.build()
}

// SeekLT moves to the last entry whose user key is < key; nil is the end. Do
// not call it with AllVersions.
func (it *Iterator) SeekLT(key []byte) bool {
	it.forwardOnly()
	if len(it.sources) == 1 {
		return it.sources[0].SeekLT(key)
	}
	it.err = nil
	it.reverse = true
	for i, s := range it.sources {
		it.moved(i, s.SeekLT(key))
	}
	return it.build()
}

// Resume continues from where the sources are: forward from their least entry, or backward
// from their greatest one. Sources that are not valid are at their end.
func (it *Iterator) Resume(reverse bool) bool {
	if len(it.sources) == 1 {
		return it.sources[0].Valid()
	}
	it.err = nil
	it.reverse = reverse
	for i, s := range it.sources {
		it.moved(i, s.Valid())
	}
	return it.build()
}

// Next moves to the next entry.
func (it *Iterator) Next() bool {
	if len(it.sources) == 1 {
		return it.sources[0].Next()
	}
	if it.ahead > 0 && !it.reverse {
		return it.stepAhead()
	}
	if !it.Valid() {
		return false
	}
	if it.all {
		it.advance(false)
		return it.Valid()
	}
	it.saveUserKey()
	if it.reverse {
		return it.changeDirection(false)
	}
	return it.moveToOtherKey(false)
}

// Prev moves to the previous entry. Do not call it with AllVersions.
func (it *Iterator) Prev() bool {
	it.forwardOnly()
	if len(it.sources) == 1 {
		return it.sources[0].Prev()
	}
	if it.ahead > 0 && it.reverse {
		return it.stepAhead()
	}
	if !it.Valid() {
		return false
	}
	it.saveUserKey()
	if !it.reverse {
		return it.changeDirection(true)
	}
	return it.moveToOtherKey(true)
}

// Valid reports whether the Iterator is at an entry.
func (it *Iterator) Valid() bool {
	switch len(it.sources) {
	case 0:
		return false
	case 1:
		return it.sources[0].Valid()
	}
	return it.err == nil && it.keys[it.tree[0]] != nil
}

// Key returns the internal key, valid until the Iterator moves.
func (it *Iterator) Key() []byte {
	if len(it.sources) == 1 {
		return it.sources[0].Key()
	}
	w := it.tree[0]
	if it.stale {
		it.keys[w], it.stale = it.sources[w].Key(), false
	}
	return it.keys[w]
}

// Row returns the row, nil for a tombstone, valid until the Iterator moves.
func (it *Iterator) Row() codec.ShapedRow {
	return it.sources[it.Index()].Row()
}

// Index returns the index of the source of the current entry. The Iterator must be
// valid.
func (it *Iterator) Index() int {
	return int(it.tree[0])
}

// Ahead returns how many entries of the source of the current entry follow it before those of
// the other sources, as far as the Iterator knows. The Iterator must be valid, and reverse the
// direction of its last move. The caller may move the source over these entries itself, and
// then calls Moved. Do not call it with AllVersions.
func (it *Iterator) Ahead(reverse bool) int {
	if len(it.sources) == 1 {
		if s, ok := it.sources[0].(Ahead); ok {
			return s.Ahead(nil, reverse)
		}
		return 0
	}
	if it.ahead == 0 {
		it.ahead = it.countAhead()
	}
	return it.ahead
}

// Moved tells the Iterator that the caller has moved the source of the current entry by n of
// the entries that Ahead counts.
func (it *Iterator) Moved(n int) {
	it.ahead -= n
	it.stale = true
}

// Err returns the first error of a source since the last Seek.
func (it *Iterator) Err() error {
	if len(it.sources) == 1 {
		return it.sources[0].Err()
	}
	return it.err
}

// Close closes the sources.
func (it *Iterator) Close() error {
	var errs []error
	for _, s := range it.sources {
		if err := s.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	it.sources = nil
	clear(it.keys[:cap(it.keys)])
	return errors.Join(errs...)
}

func (it *Iterator) forwardOnly() {
	if it.all {
		panic("merge: an iterator of all versions moves forward only")
	}
}

// saveUserKey copies the current user key, which identifies shadowed versions.
// The bytes of the winner change when the winner moves.
func (it *Iterator) saveUserKey() {
	key := it.Key()
	it.user = append(it.user[:0], key[:len(key)-codec.TrailerLen]...)
}

// moveToOtherKey moves the winner until an entry of another user key wins.
func (it *Iterator) moveToOtherKey(reverse bool) bool {
	before := it.tree[0]
	for {
		it.advance(reverse)
		if it.err != nil {
			return false
		}
		key := it.keys[it.tree[0]]
		if key == nil {
			return false
		}
		if !bytes.Equal(key[:len(key)-codec.TrailerLen], it.user) {
			break
		}
	}
	if it.tree[0] != before {
		it.wins = 0
	} else if it.wins++; it.wins == aheadAfter {
		it.lookAhead()
	}
	return true
}

// lookAhead sets ahead.
func (it *Iterator) lookAhead() {
	it.ahead, it.wins = it.countAhead(), 0
	if it.ahead < minAhead {
		it.wins = -aheadLater
	}
}

// countAhead returns how many entries of the winner follow before those of other sources, 0 if
// the winner does not know.
func (it *Iterator) countAhead() int {
	w := it.tree[0]
	source, ok := it.sources[w].(Ahead)
	if !ok {
		return 0
	}
	next := int32(-1) // the source after the winner: it has lost to the winner alone
	for p := (int(w) + len(it.tree)) / 2; p > 0; p /= 2 {
		if next < 0 || it.less(it.tree[p], next) {
			next = it.tree[p]
		}
	}
	key := it.keys[next]
	if key != nil {
		key = key[:len(key)-codec.TrailerLen]
	}
	return source.Ahead(key, it.reverse)
}

// stepAhead moves the winner, whose next entry is before those of the other sources.
func (it *Iterator) stepAhead() bool {
	it.ahead--
	w, ok := it.tree[0], false
	if it.reverse {
		ok = it.sources[w].Prev()
	} else {
		ok = it.sources[w].Next()
	}
	it.stale = ok
	if !ok { // a value of the entry before cannot be read
		it.ahead = 0
		it.moved(int(w), false)
	}
	return ok
}

// changeDirection moves one entry in the other direction, from it.user. The other
// sources are on the wrong side of the key, or beyond an end.
func (it *Iterator) changeDirection(reverse bool) bool {
	winner := int(it.tree[0])
	it.reverse = reverse
	if !reverse {
		it.user = append(it.user, 0) // the least key above it
	}
	for i, s := range it.sources {
		switch {
		case i == winner && reverse:
			it.moved(i, s.Prev())
		case i == winner:
			it.moved(i, s.Next())
		case reverse:
			it.moved(i, s.SeekLT(it.user))
		default:
			it.moved(i, s.SeekGE(it.user))
		}
	}
	return it.build()
}

// advance moves the winner and repeats the comparisons on its path.
func (it *Iterator) advance(reverse bool) {
	w := it.tree[0]
	if reverse {
		it.moved(int(w), it.sources[w].Prev())
	} else {
		it.moved(int(w), it.sources[w].Next())
	}
	for p := (int(w) + len(it.tree)) / 2; p > 0; p /= 2 {
		if it.less(it.tree[p], w) {
			it.tree[p], w = w, it.tree[p]
		}
	}
	it.tree[0] = w
}

// moved records the key of source i after a move.
func (it *Iterator) moved(i int, ok bool) {
	if ok {
		it.keys[i] = it.sources[i].Key()
		return
	}
	it.keys[i] = nil
	if it.err == nil {
		it.err = it.sources[i].Err()
	}
}

// build makes all comparisons of the tree. The first source that reaches a node
// is stored there until the second source arrives; the loser remains.
func (it *Iterator) build() bool {
	it.wins, it.ahead, it.stale = 0, 0, false
	const none = -1
	for i := range it.tree {
		it.tree[i] = none
	}
	for i := range it.tree {
		w := int32(i)
		for p := (i + len(it.tree)) / 2; ; p /= 2 {
			if it.tree[p] == none { // tree[0] is that of the winner alone
				it.tree[p] = w
				break
			}
			if it.less(it.tree[p], w) {
				it.tree[p], w = w, it.tree[p]
			}
		}
	}
	return it.Valid()
}

// less reports whether the entry of source a comes before the entry of source b.
func (it *Iterator) less(a, b int32) bool {
	ka, kb := it.keys[a], it.keys[b]
	if ka == nil || kb == nil {
		return kb == nil
	}
	var c int
	if it.reverse {
		na, nb := len(ka)-codec.TrailerLen, len(kb)-codec.TrailerLen
		if c = bytes.Compare(kb[:nb], ka[:na]); c == 0 {
			c = bytes.Compare(ka[na:], kb[nb:])
		}
	} else {
		c = bytes.Compare(ka, kb)
	}
	return c < 0 || c == 0 && a < b
}
