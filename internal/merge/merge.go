// Package merge shows several sorted sources as one.
//
// Keys are internal keys: a user key followed by a trailer of eight bytes that
// is smaller the newer the version. No user key is a prefix of another, so
// that bytes.Compare of whole internal keys orders by user key and then newest
// first.
package merge

import (
	"bytes"
	"errors"
)

// trailerLen is the length of the part of an internal key that tells the
// versions of one user key apart.
const trailerLen = 8

// Source is a sorted list of entries; R is what stands behind a key. An
// Iterator is a Source too. A Source belongs to one goroutine.
type Source[R any] interface {
	// SeekGE moves to the first entry whose user key is >= key.
	SeekGE(key []byte) bool
	// SeekLT moves to the last entry whose user key is < key; nil is the end.
	SeekLT(key []byte) bool
	// Next moves to the next entry, after a Seek. Beyond either end only a Seek
	// makes the source valid again.
	Next() bool
	// Prev moves to the entry before, as Next does to the one behind.
	Prev() bool
	// Valid reports whether the source stands at an entry.
	Valid() bool
	// Key returns the internal key, valid until the source moves.
	Key() []byte
	// Row returns what stands behind the key, valid until the source moves.
	Row() R
	// Err returns why a move returned false, nil if it met the end.
	Err() error
	// Close releases what the source holds.
	Close() error
}

// Options choose what an Iterator shows.
type Options struct {
	// AllVersions shows every entry of every source, forward only, for
	// compaction. By default each source shows at most one version per user
	// key, and the Iterator shows the newest of these.
	AllVersions bool
}

// Iterator is the merge of its sources. It belongs to one goroutine. No step
// allocates, beyond a buffer that grows to the longest key.
//
// With more than one source it is a tree of losers: an inner node remembers
// who lost there, so that a step replays one path from a leaf to the root,
// with one comparison per level.
type Iterator[R any] struct {
	sources []Source[R]
	keys    [][]byte // keys[i] is the key of sources[i], nil beyond its end
	tree    []int32  // tree[0] is the winner, tree[1:] are the losers
	user    []byte   // the user key that is being left
	err     error
	all     bool
	reverse bool
}

// New returns the merge of sources, which it owns until Close. Where two
// entries have the same internal key, the earlier source goes first.
func New[R any](sources []Source[R], o Options) *Iterator[R] {
	it := new(Iterator[R])
	it.Init(sources, o)
	return it
}

// Init makes it the merge of other sources and keeps its memory. Sources that
// it had are forgotten and not closed.
func (it *Iterator[R]) Init(sources []Source[R], o Options) {
	it.sources = sources
	it.all = o.AllVersions
	it.err = nil
	it.reverse = false
	n := len(sources)
	if cap(it.tree) < n {
		it.keys, it.tree = make([][]byte, n), make([]int32, n)
	}
	it.keys, it.tree = it.keys[:n], it.tree[:n]
	clear(it.keys)
	clear(it.tree)
}

// SeekGE moves to the first entry whose user key is >= key.
func (it *Iterator[R]) SeekGE(key []byte) bool {
	if len(it.sources) == 1 {
		return it.sources[0].SeekGE(key)
	}
	it.err = nil
	it.reverse = false
	for i, s := range it.sources {
		it.arrived(i, s.SeekGE(key))
	}
	return it.build()
}

// SeekLT moves to the last entry whose user key is < key; nil is the end. It
// must not be called with AllVersions.
func (it *Iterator[R]) SeekLT(key []byte) bool {
	it.forwardOnly()
	if len(it.sources) == 1 {
		return it.sources[0].SeekLT(key)
	}
	it.err = nil
	it.reverse = true
	for i, s := range it.sources {
		it.arrived(i, s.SeekLT(key))
	}
	return it.build()
}

// Next moves to the next entry.
func (it *Iterator[R]) Next() bool {
	if len(it.sources) == 1 {
		return it.sources[0].Next()
	}
	if !it.Valid() {
		return false
	}
	if it.all {
		it.advance(false)
		return it.Valid()
	}
	it.leave()
	if it.reverse {
		return it.turn(false)
	}
	return it.pass(false)
}

// Prev moves to the previous entry. It must not be called with AllVersions.
func (it *Iterator[R]) Prev() bool {
	it.forwardOnly()
	if len(it.sources) == 1 {
		return it.sources[0].Prev()
	}
	if !it.Valid() {
		return false
	}
	it.leave()
	if !it.reverse {
		return it.turn(true)
	}
	return it.pass(true)
}

// Valid reports whether it stands at an entry.
func (it *Iterator[R]) Valid() bool {
	switch len(it.sources) {
	case 0:
		return false
	case 1:
		return it.sources[0].Valid()
	}
	return it.err == nil && it.keys[it.tree[0]] != nil
}

// Key returns the internal key, valid until it moves.
func (it *Iterator[R]) Key() []byte {
	if len(it.sources) == 1 {
		return it.sources[0].Key()
	}
	return it.keys[it.tree[0]]
}

// Row returns what stands behind the key, valid until it moves.
func (it *Iterator[R]) Row() R {
	return it.sources[it.At()].Row()
}

// At returns the index of the source whose entry it shows. It must be valid.
func (it *Iterator[R]) At() int {
	if len(it.sources) == 1 {
		return 0
	}
	return int(it.tree[0])
}

// Err returns the first error that a source met since the last Seek.
func (it *Iterator[R]) Err() error {
	if len(it.sources) == 1 {
		return it.sources[0].Err()
	}
	return it.err
}

// Close closes the sources.
func (it *Iterator[R]) Close() error {
	var errs []error
	for _, s := range it.sources {
		if err := s.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	it.sources, it.keys, it.tree = nil, nil, nil
	return errors.Join(errs...)
}

func (it *Iterator[R]) forwardOnly() {
	if it.all {
		panic("merge: all versions are shown forward only")
	}
}

// leave remembers the user key at which it stands: the winner's own bytes
// change when it moves, and they are needed to recognise shadowed versions.
func (it *Iterator[R]) leave() {
	key := it.Key()
	it.user = append(it.user[:0], key[:len(key)-trailerLen]...)
}

// pass moves the winners on until one of another user key wins.
func (it *Iterator[R]) pass(reverse bool) bool {
	for {
		it.advance(reverse)
		if it.err != nil {
			return false
		}
		key := it.keys[it.tree[0]]
		if key == nil {
			return false
		}
		if !bytes.Equal(key[:len(key)-trailerLen], it.user) {
			return true
		}
	}
}

// turn changes the direction at it.user and moves one entry that way. The
// other sources stand on the wrong side of the key, or beyond an end.
func (it *Iterator[R]) turn(reverse bool) bool {
	winner := int(it.tree[0])
	it.reverse = reverse
	if !reverse {
		it.user = append(it.user, 0) // the least key above it
	}
	for i, s := range it.sources {
		switch {
		case i == winner && reverse:
			it.arrived(i, s.Prev())
		case i == winner:
			it.arrived(i, s.Next())
		case reverse:
			it.arrived(i, s.SeekLT(it.user))
		default:
			it.arrived(i, s.SeekGE(it.user))
		}
	}
	return it.build()
}

// advance moves the winner and lets it play again.
func (it *Iterator[R]) advance(reverse bool) {
	w := it.tree[0]
	if reverse {
		it.arrived(int(w), it.sources[w].Prev())
	} else {
		it.arrived(int(w), it.sources[w].Next())
	}
	for p := (int(w) + len(it.tree)) / 2; p > 0; p /= 2 {
		if it.less(it.tree[p], w) {
			it.tree[p], w = w, it.tree[p]
		}
	}
	it.tree[0] = w
}

// arrived notes where source i stands after a move.
func (it *Iterator[R]) arrived(i int, ok bool) {
	if ok {
		it.keys[i] = it.sources[i].Key()
		return
	}
	it.keys[i] = nil
	if err := it.sources[i].Err(); err != nil && it.err == nil {
		it.err = err
	}
}

// build plays all matches. The first to reach a node waits there for the
// other; who loses stays.
func (it *Iterator[R]) build() bool {
	const nobody = -1
	for i := range it.tree {
		it.tree[i] = nobody
	}
	for i := range it.tree {
		w := int32(i)
		for p := (i + len(it.tree)) / 2; ; p /= 2 {
			if p == 0 || it.tree[p] == nobody {
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

// less reports whether source a's entry is shown before b's.
func (it *Iterator[R]) less(a, b int32) bool {
	ka, kb := it.keys[a], it.keys[b]
	if ka == nil || kb == nil {
		return kb == nil && (ka != nil || a < b)
	}
	var c int
	if it.reverse {
		na, nb := len(ka)-trailerLen, len(kb)-trailerLen
		if c = bytes.Compare(kb[:nb], ka[:na]); c == 0 {
			c = bytes.Compare(ka[na:], kb[nb:])
		}
	} else {
		c = bytes.Compare(ka, kb)
	}
	return c < 0 || c == 0 && a < b
}
