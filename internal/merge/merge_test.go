package merge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
)

// entry is an entry of the model, and its row. User keys are short texts that end
// in 01, so that none is a prefix of another.
type entry struct {
	codec.ShapedRow // nil
	user            string
	seq             uint64
	source          int
}

func (e entry) key() []byte {
	return binary.BigEndian.AppendUint64([]byte(e.user), ^e.seq)
}

func (e entry) String() string { return fmt.Sprintf("%q@%d/%d", e.user, e.seq, e.source) }

func byKey(a, b entry) int {
	if c := bytes.Compare(a.key(), b.key()); c != 0 {
		return c
	}
	return a.source - b.source
}

// list is a Source over a sorted slice. It returns one buffer for all keys and
// overwrites it at each move, as other sources may.
type list struct {
	rows   []entry
	pos    int // -1 and len(rows) are the ends
	buf    []byte
	failAt int // this move fails; 0 none
	moves  int
	err    error
	closed error
}

var errMove = errors.New("move failed")

func (l *list) moveTo(pos int) bool {
	for i := range l.buf {
		l.buf[i] = 0xdd
	}
	if l.moves++; l.moves == l.failAt {
		l.err = errMove
		pos = len(l.rows)
	}
	l.pos = pos
	if !l.Valid() {
		return false
	}
	l.buf = append(l.buf[:0], l.rows[pos].key()...)
	return true
}

func (l *list) SeekGE(key []byte) bool {
	i, _ := slices.BinarySearchFunc(l.rows, string(key), func(e entry, k string) int { return strings.Compare(e.user, k) })
	return l.moveTo(i)
}

func (l *list) SeekLT(key []byte) bool {
	if key == nil {
		return l.moveTo(len(l.rows) - 1)
	}
	i, _ := slices.BinarySearchFunc(l.rows, string(key), func(e entry, k string) int { return strings.Compare(e.user, k) })
	return l.moveTo(i - 1)
}

func (l *list) Next() bool           { return l.Valid() && l.moveTo(l.pos+1) }
func (l *list) Prev() bool           { return l.Valid() && l.moveTo(l.pos-1) }
func (l *list) Valid() bool          { return l.err == nil && l.pos >= 0 && l.pos < len(l.rows) }
func (l *list) Key() []byte          { return l.buf }
func (l *list) Row() codec.ShapedRow { return l.rows[l.pos] }
func (l *list) Err() error           { return l.err }
func (l *list) Close() error {
	return l.closed
}

// randomSources distributes random versions over n sources. With all, a source may
// contain several versions of a user key.
func randomSources(rng *rand.Rand, n, rows int, all bool) ([]*list, []entry) {
	lists := make([]*list, n)
	var flat []entry
	for i := range lists {
		seen := make(map[string]bool)
		l := &list{pos: -1}
		for range rng.IntN(rows + 1) {
			e := entry{user: fmt.Sprintf("%0*d\x01", 1+rng.IntN(3), rng.IntN(rows)), seq: rng.Uint64N(1000), source: i}
			if seen[e.user] && !all {
				continue
			}
			seen[e.user] = true
			l.rows = append(l.rows, e)
		}
		slices.SortFunc(l.rows, byKey)
		flat = append(flat, l.rows...)
		lists[i] = l
	}
	slices.SortFunc(flat, byKey)
	return lists, flat
}

// newest keeps the first entry of each user key.
func newest(flat []entry) []entry {
	return slices.CompactFunc(slices.Clone(flat), func(a, b entry) bool { return a.user == b.user })
}

func newIterator(sources []Source, o Options) *Iterator {
	it := new(Iterator)
	it.Init(sources, o)
	return it
}

func sourcesOf(lists []*list) []Source {
	out := make([]Source, len(lists))
	for i, l := range lists {
		out[i] = l
	}
	return out
}

// farList is a list that implements Ahead: it knows the entries of the same block of ten.
type farList struct{ *list }

func (l farList) Ahead(key []byte, reverse bool) (n int) {
	const block = 10
	step := 1
	if reverse {
		step = -1
	}
	for i := l.pos + step; i >= 0 && i < len(l.rows) && i/block == l.pos/block; i += step {
		if c := strings.Compare(l.rows[i].user, string(key)); key != nil && c*step >= 0 {
			break
		}
		n++
	}
	return n
}

// farSourcesOf returns sources of which some implement Ahead.
func farSourcesOf(rng *rand.Rand, lists []*list) []Source {
	out := sourcesOf(lists)
	for i, l := range lists {
		if rng.IntN(3) > 0 {
			out[i] = farList{l}
		}
	}
	return out
}

func TestIteratorAgainstSortedSlice(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var it Iterator
	var moved [3]int // by the number of sources, 2 for more
	for round := range 600 {
		n := rng.IntN(11)
		lists, flat := randomSources(rng, n, 1+rng.IntN(40), false)
		model := &list{rows: newest(flat), pos: -1}
		sources := farSourcesOf(rng, lists)
		it.Init(sources, Options{})
		if it.Valid() || it.Err() != nil {
			t.Fatalf("round %d: valid %v before a seek, error %v", round, it.Valid(), it.Err())
		}
		var trace []string
		for range 100 {
			var got, want, reverse bool
			op := rng.IntN(8)
			if op != 1 && rng.IntN(2) == 0 {
				op = 2 + round%2*4 // longer ways in one direction
			}
			key := []byte(fmt.Sprintf("%0*d\x01", 1+rng.IntN(3), rng.IntN(45)))
			seekGE, seekLT := it.SeekGE, it.SeekLT
			if rng.IntN(2) == 0 {
				seekGE, seekLT = resumeGE(&it, sources), resumeLT(&it, sources)
			}
			switch {
			case op == 0 || len(trace) == 0:
				trace = append(trace, fmt.Sprintf("SeekGE(%q)", key))
				got, want = seekGE(key), model.SeekGE(key)
			case op == 1:
				if rng.IntN(3) == 0 {
					key = nil
				}
				trace = append(trace, fmt.Sprintf("SeekLT(%q)", key))
				got, want, reverse = seekLT(key), model.SeekLT(key), true
			case op < 5:
				trace = append(trace, "Next")
				got, want = it.Next(), model.Next()
			default:
				trace = append(trace, "Prev")
				got, want, reverse = it.Prev(), model.Prev(), true
			}
			if got != want || it.Valid() != model.Valid() || it.Err() != nil {
				t.Fatalf("round %d, %d sources, %v: got %v (valid %v, err %v), want %v\n%v", round, n, trace, got, it.Valid(), it.Err(), want, flat)
			}
			if got && rng.IntN(4) == 0 {
				ahead := it.Ahead(reverse)
				n := rng.IntN(ahead + 1)
				trace = append(trace, fmt.Sprintf("Moved(%d) of %d", n, ahead))
				for range n {
					if s := sources[it.Index()]; reverse {
						s.Prev()
						model.Prev()
					} else {
						s.Next()
						model.Next()
					}
				}
				it.Moved(n)
				moved[min(len(sources), 2)] += n
			}
			// A step may leave the key of an entry that nobody asks for.
			if got && (it.Row() != model.Row() || rng.IntN(3) == 0 && !bytes.Equal(it.Key(), model.Key())) {
				t.Fatalf("round %d, %d sources, %v: got %v, want %v\n%v", round, n, trace, it.Row(), model.Row(), flat)
			}
		}
		if it.Init(nil, Options{}); it.Next() || it.Prev() {
			t.Fatalf("round %d: a move without sources", round)
		}
	}
	if moved[1] == 0 || moved[2] == 0 {
		t.Errorf("%d entries of a single source and %d of several were moved ahead", moved[1], moved[2])
	}
}

// resumeGE and resumeLT return seeks that move the sources and then resume.
func resumeGE(it *Iterator, sources []Source) func(key []byte) bool {
	return func(key []byte) bool {
		for _, s := range sources {
			s.SeekGE(key)
		}
		return it.Resume(false)
	}
}

func resumeLT(it *Iterator, sources []Source) func(key []byte) bool {
	return func(key []byte) bool {
		for _, s := range sources {
			s.SeekLT(key)
		}
		return it.Resume(true)
	}
}

func TestIteratorAllVersions(t *testing.T) {
	const seed = 2
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 300 {
		lists, want := randomSources(rng, rng.IntN(11), 40, true)
		it := newIterator(sourcesOf(lists), Options{AllVersions: true})
		var got []entry
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
			e := it.Row().(entry)
			if !bytes.Equal(it.Key(), e.key()) || it.Index() != e.source {
				t.Fatalf("round %d: key %q of source %d has the row %v", round, it.Key(), it.Index(), e)
			}
			got = append(got, e)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
	}
}

func TestIteratorAllVersionsIsForwardOnly(t *testing.T) {
	for name, move := range map[string]func(*Iterator) bool{
		"SeekLT": func(it *Iterator) bool { return it.SeekLT(nil) },
		"Prev":   func(it *Iterator) bool { return it.Prev() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			move(newIterator(sourcesOf([]*list{{}}), Options{AllVersions: true}))
		})
	}
}

// TestIteratorStopsAtError fails each move of one source, one after the other. The
// entries before the error are right, and Err returns it.
func TestIteratorStopsAtError(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for failAt := 1; failAt < 20; failAt++ {
			for _, reverse := range []bool{false, true} {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(failAt)))
				lists, flat := randomSources(rng, n, 40, false)
				want := newest(flat)
				if reverse {
					slices.Reverse(want)
				}
				bad := lists[rng.IntN(n)]
				bad.failAt = failAt
				it := newIterator(farSourcesOf(rng, lists), Options{})
				first, step := func() bool { return it.SeekGE(nil) }, it.Next
				if reverse {
					first, step = func() bool { return it.SeekLT(nil) }, it.Prev
				}
				i := 0
				for ok := first(); ok; ok = step() {
					if i >= len(want) || it.Row() != want[i] {
						t.Fatalf("%d sources, fail at %d: entry %d is %v", n, failAt, i, it.Row())
					}
					i++
				}
				failed := bad.moves >= failAt
				if got := it.Err(); failed != errors.Is(got, errMove) {
					t.Fatalf("%d sources, fail at %d, failed %v: Err %v", n, failAt, failed, got)
				}
				if !failed && i != len(want) {
					t.Fatalf("%d sources: %d entries, want %d", n, i, len(want))
				}
				if it.Valid() || step() {
					t.Fatalf("%d sources, fail at %d: moved after its end", n, failAt)
				}
			}
		}
	}
}

func TestSeekAfterError(t *testing.T) {
	for _, c := range []struct {
		name string
		seek func(*Iterator) bool
		want string
	}{
		{"SeekGE", func(it *Iterator) bool { return it.SeekGE([]byte("b")) }, "b\x01"},
		{"SeekLT", func(it *Iterator) bool { return it.SeekLT([]byte("c")) }, "b\x01"},
		{"Resume", func(it *Iterator) bool { return it.Resume(false) }, "c\x01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &list{rows: []entry{{user: "a\x01", seq: 1}, {user: "b\x01", seq: 1}}, failAt: 2}
			b := &list{rows: []entry{{user: "c\x01", seq: 1, source: 1}}}
			it := newIterator(sourcesOf([]*list{a, b}), Options{})
			if !it.SeekGE(nil) || it.Next() || it.Err() == nil {
				t.Fatalf("the second move of the first source did not fail: %v", it.Err())
			}
			a.err = nil
			if !c.seek(it) || it.Row().(entry).user != c.want || it.Err() != nil {
				t.Fatalf("afterwards: valid %v, err %v", it.Valid(), it.Err())
			}
		})
	}
}

// TestFirstError fails to read two of four sources. Err returns the first error, until Init.
func TestFirstError(t *testing.T) {
	errA, errB := errors.New("a"), errors.New("b")
	var it Iterator
	for name, seek := range map[string]func() bool{
		"SeekGE": func() bool { return it.SeekGE(nil) },
		"SeekLT": func() bool { return it.SeekLT(nil) },
		"Resume": func() bool { return it.Resume(false) },
	} {
		it.Init(sourcesOf([]*list{{}, {err: errA}, {err: errB}, {}}), Options{})
		if err := it.Err(); seek() || err != nil || it.Err() != errA {
			t.Errorf("%s: error %v before, and %v after, want %v", name, err, it.Err(), errA)
		}
	}
}

func TestClose(t *testing.T) {
	errA, errB := errors.New("a"), errors.New("b")
	it := newIterator(sourcesOf([]*list{{closed: errA}, {}, {closed: errB}}), Options{})
	err := it.Close()
	if !errors.Is(err, errA) || !errors.Is(err, errB) {
		t.Fatalf("Close: %v, want both %v and %v", err, errA, errB)
	}
	if err := it.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	lists, flat := randomSources(rng, 8, 200, false)
	sources := make([]Source, len(lists))
	for i, l := range lists {
		sources[i] = newPacked(l.rows)
	}
	it := newIterator(sources, Options{})
	it.SeekGE(nil)
	it.Next()
	steps := len(newest(flat)) / 2
	got := testing.AllocsPerRun(10, func() {
		it.SeekGE(nil)
		for range steps {
			it.Next()
		}
		for range steps {
			it.Prev()
		}
	})
	if got != 0 {
		t.Fatalf("%v allocations, want none", got)
	}
}

// packed is a Source whose moves are cheap.
type packed struct {
	keys [][]byte
	pos  int
}

func newPacked(rows []entry) *packed {
	p := new(packed)
	for _, e := range rows {
		p.keys = append(p.keys, e.key())
	}
	return p
}

func (p *packed) find(key []byte) int {
	i, _ := slices.BinarySearchFunc(p.keys, key, func(k, key []byte) int { return bytes.Compare(k[:len(k)-codec.TrailerLen], key) })
	return i
}

func (p *packed) SeekGE(key []byte) bool { p.pos = p.find(key); return p.Valid() }
func (p *packed) SeekLT(key []byte) bool {
	p.pos = len(p.keys) - 1
	if key != nil {
		p.pos = p.find(key) - 1
	}
	return p.Valid()
}
func (p *packed) Next() bool           { p.pos++; return p.pos < len(p.keys) }
func (p *packed) Prev() bool           { p.pos--; return p.pos >= 0 }
func (p *packed) Valid() bool          { return p.pos >= 0 && p.pos < len(p.keys) }
func (p *packed) Key() []byte          { return p.keys[p.pos] }
func (p *packed) Row() codec.ShapedRow { return entry{} }
func (p *packed) Err() error           { return nil }
func (p *packed) Close() error         { return nil }

func BenchmarkNext(b *testing.B) {
	for _, order := range []string{"random", "blocks"} {
		for _, n := range []int{1, 2, 4, 8, 20} {
			b.Run(fmt.Sprintf("order=%s/sources=%d", order, n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 0))
				rows := make([][]entry, n)
				for i := range 1 << 15 {
					to := rng.IntN(n)
					if order == "blocks" {
						to = i / 256 % n
					}
					rows[to] = append(rows[to], entry{user: fmt.Sprintf("tbl1partition-0001\x01row-%012d\x01", i), seq: uint64(i)})
				}
				sources := make([]Source, n)
				for i := range sources {
					sources[i] = newPacked(rows[i])
				}
				it := newIterator(sources, Options{})
				b.ReportAllocs()
				for b.Loop() {
					if !it.Next() {
						it.SeekGE(nil)
					}
				}
			})
		}
	}
}
