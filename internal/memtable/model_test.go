package memtable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

const seed = 20261121 // of every random choice in these tests

var testShape = codec.NewShape(edm.Properties{{Name: "seq", Value: edm.Int64(0)}, {Name: "text", Value: edm.String("")}})

// log is a segment's image that a test fills.
type log struct {
	image []byte
	tail  int
	buf   []byte
}

func newLog(n int) *log { return &log{image: make([]byte, n)} }

// add appends one entry and returns its offset. A put carries seq and text.
func (l *log) add(t testing.TB, key []byte, kind codec.Kind, seq uint64, text string) uint32 {
	e := codec.Entry{Kind: kind, Timestamp: edm.Ticks(seq), Key: key}
	if kind == codec.KindPut {
		props := edm.Properties{{Name: "seq", Value: edm.Int64(int64(seq))}, {Name: "text", Value: edm.String(text)}}
		l.buf, e.Wide = codec.AppendValues(l.buf[:0], testShape, props)
		e.Values, e.Shape = l.buf, 1
	}
	off := l.tail
	n := codec.EntryHeaderLen + len(e.Key) + len(e.Values)
	if off+n > len(l.image) {
		t.Fatalf("image of %d bytes is full", len(l.image))
	}
	codec.AppendEntry(l.image[off:off], e)
	l.tail += n
	return uint32(off)
}

// modelVersion is a version of a row in the model.
type modelVersion struct {
	seq  uint64
	kind codec.Kind
}

// model is a table and a plain model of it.
type model struct {
	t     testing.TB
	log   *log
	table *Table
	rows  map[string][]modelVersion // newest last
	keys  []string                  // sorted if ready is set
	ready bool
	seq   uint64
	snaps []uint64 // registered snapshots, ascending
	it    Iterator // of checkScans, used again
}

func newModel(t testing.TB, imageBytes int) *model {
	m := &model{t: t, log: newLog(imageBytes), rows: map[string][]modelVersion{}}
	m.table = New(m.log.image)
	m.table.AddShape(1, 0, testShape)
	return m
}

func (m *model) apply(key []byte, kind codec.Kind) {
	m.seq++
	keep := uint64(0)
	if len(m.snaps) > 0 {
		keep = m.snaps[len(m.snaps)-1]
	}
	m.table.Apply(m.log.add(m.t, key, kind, m.seq, fmt.Sprint("t", m.seq)), m.seq, keep)
	old, ok := m.rows[string(key)]
	if !ok {
		m.keys = append(m.keys, string(key))
		m.ready = false
	}
	switch n := len(old); {
	case keep == 0:
		old = nil
	case n > 0 && old[n-1].seq > keep:
		old = old[:n-1]
	}
	m.rows[string(key)] = append(old, modelVersion{m.seq, kind})
}

func (m *model) at(key string, snap uint64) (modelVersion, bool) {
	versions := m.rows[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].seq <= snap {
			return versions[i], true
		}
	}
	return modelVersion{}, false
}

func (m *model) sorted() []string {
	if !m.ready {
		sort.Strings(m.keys)
		m.ready = true
	}
	return m.keys
}

// checkGet compares one point read.
func (m *model) checkGet(key []byte, snap uint64) {
	m.t.Helper()
	var row codec.Row
	seq, kind, ok := m.table.Get(key, codec.PartitionHash(key), snap, &row)
	want, wantOK := m.at(string(key), snap)
	if ok != wantOK || seq != want.seq || kind != want.kind {
		m.t.Fatalf("seed %d: Get(%q, snap %d) = %d %d %t, want %d %d %t", seed, key, snap, seq, kind, ok, want.seq, want.kind, wantOK)
	}
	if ok && kind == codec.KindPut {
		checkRow(m.t, &row, key, seq)
	}
}

// checkRow checks that row is what the log wrote for key at seq.
func checkRow(t testing.TB, row codec.ShapedRow, key []byte, seq uint64) {
	t.Helper()
	if row == nil {
		t.Fatalf("no row of %q at %d", key, seq)
	}
	k := row.Key()
	table, _, _, _ := codec.SplitKey(key)
	if got := codec.AppendKey(nil, table, k.Partition, k.Row); !bytes.Equal(got, key) {
		t.Fatalf("row has key %q, want %q", got, key)
	}
	_, n := row.At(0)
	text, _ := row.Lookup("text")
	if !n.Equal(edm.Int64(int64(seq))) || row.Timestamp() != edm.Ticks(seq) || !text.Equal(edm.String(fmt.Sprint("t", seq))) {
		t.Fatalf("row of %q has seq %v, time %d, text %v, want %d", key, n, row.Timestamp(), text, seq)
	}
}

// checkRow compares the row an iterator is at.
func (m *model) checkAt(it *Iterator, key string, snap uint64) {
	m.t.Helper()
	want, _ := m.at(key, snap)
	user, seq, kind := codec.SplitTrailer(it.Key())
	if string(user) != key || seq != want.seq || kind != want.kind {
		m.t.Fatalf("seed %d: at %q seq %d kind %d, want %q seq %d kind %d", seed, user, seq, kind, key, want.seq, want.kind)
	}
	if kind == codec.KindDelete {
		if it.Row() != nil {
			m.t.Fatalf("a tombstone of %q with a row", key)
		}
		return
	}
	checkRow(m.t, it.Row(), user, seq)
}

// visible returns the keys in [lower, upper) that have a version at snap.
func (m *model) visible(lower, upper []byte, snap uint64) []string {
	var out []string
	for _, k := range m.sorted() {
		if (lower != nil && k < string(lower)) || (upper != nil && k >= string(upper)) {
			continue
		}
		if _, ok := m.at(k, snap); ok {
			out = append(out, k)
		}
	}
	return out
}

// checkScans compares whole scans in both directions, and every version.
func (m *model) checkScans(lower, upper []byte, snap uint64) {
	m.t.Helper()
	want := m.visible(lower, upper, snap)
	passed := m.table.Passed()
	for _, key := range want {
		if v, _ := m.at(key, snap); v.kind == codec.KindDelete {
			passed += 2
		}
	}
	it := &m.it
	it.Init(m.table, IterOptions{Lower: lower, Upper: upper, Snapshot: snap})
	i := 0
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if i == len(want) {
			m.t.Fatalf("forward [%q, %q): %q after the end", lower, upper, it.Key())
		}
		m.checkAt(it, want[i], snap)
		i++
	}
	if i != len(want) {
		m.t.Fatalf("forward [%q, %q) at %d: %d rows, want %d", lower, upper, snap, i, len(want))
	}
	if it.Next() || it.Prev() {
		m.t.Fatalf("forward [%q, %q): a move from the end to %q", lower, upper, it.Key())
	}
	for ok := it.SeekLT(nil); ok; ok = it.Prev() {
		i--
		if i < 0 {
			m.t.Fatalf("backward [%q, %q): %q after the end", lower, upper, it.Key())
		}
		m.checkAt(it, want[i], snap)
	}
	if i != 0 {
		m.t.Fatalf("backward [%q, %q) at %d: %d rows missing", lower, upper, snap, i)
	}
	if it.Next() || it.Prev() {
		m.t.Fatalf("backward [%q, %q): a move from the end to %q", lower, upper, it.Key())
	}
	if err := it.Close(); err != nil || it.Valid() || it.Err() != nil {
		m.t.Fatalf("Close = %v, Valid = %t", err, it.Valid())
	}
	if got := m.table.Passed(); got != passed {
		m.t.Fatalf("[%q, %q) at %d: scans in both directions passed %d tombstones in all, want %d", lower, upper, snap, got, passed)
	}
}

// checkVersions compares every version in the table.
func (m *model) checkVersions() {
	m.t.Helper()
	it := m.table.NewIterator(IterOptions{AllVersions: true})
	n, ok := 0, it.SeekGE(nil)
	for _, k := range m.sorted() {
		versions := m.rows[k]
		for i := len(versions) - 1; i >= 0; i-- {
			if !ok {
				m.t.Fatalf("all versions end at %d, before %q seq %d", n, k, versions[i].seq)
			}
			m.checkAt(it, k, versions[i].seq)
			n++
			ok = it.Next()
		}
	}
	if ok || m.table.Len() != n {
		m.t.Fatalf("%d versions, more = %t, Len = %d", n, ok, m.table.Len())
	}
}

// walk moves an iterator at random and compares every step.
func (m *model) walk(rnd *rand.Rand, lower, upper []byte, snap uint64, steps int) {
	m.t.Helper()
	rows := m.visible(lower, upper, snap)
	it := m.table.NewIterator(IterOptions{Lower: lower, Upper: upper, Snapshot: snap})
	at, ok := -1, false
	for range steps {
		var what string
		switch op := rnd.IntN(20); {
		case op == 0 || !ok && op < 10:
			key := m.bound(rnd)
			what = fmt.Sprintf("SeekGE(%q)", key)
			at = sort.SearchStrings(rows, string(key))
			ok = it.SeekGE(key)
			clear(key) // it belongs to the caller
		case op == 1 || !ok:
			key := m.bound(rnd)
			what = fmt.Sprintf("SeekLT(%q)", key)
			at = len(rows) - 1
			if key != nil {
				at = sort.SearchStrings(rows, string(key)) - 1
			}
			ok = it.SeekLT(key)
			clear(key)
		case op < 13:
			what, ok = "Next", it.Next()
			at++
		default:
			what, ok = "Prev", it.Prev()
			at--
		}
		if want := at >= 0 && at < len(rows); ok != want || it.Valid() != want {
			m.t.Fatalf("seed %d: %s in [%q, %q) = %t, want %t (row %d of %d)", seed, what, lower, upper, ok, want, at, len(rows))
		}
		if ok {
			m.checkAt(it, rows[at], snap)
		}
	}
	err := it.Close()
	if err != nil || it.Valid() || it.t != nil || it.o.Lower != nil || it.o.Upper != nil || it.from != nil || it.dirFrom != nil ||
		!reflect.ValueOf(it.row).IsZero() {
		m.t.Fatalf("Close = %v, and the iterator refers to rows: %+v", err, it)
	}
}

// bound returns a key of the model or a key near one.
func (m *model) bound(rnd *rand.Rand) []byte {
	keys := m.sorted()
	if len(keys) == 0 || rnd.IntN(20) == 0 {
		return nil
	}
	key := []byte(keys[rnd.IntN(len(keys))])
	n := codec.PartitionLen(key)
	switch rnd.IntN(10) {
	case 0:
		return key[:n] // T PK 01
	case 1:
		return append(key[:n-1:n-1], 2) // T PK 02
	case 2:
		return key[:n-1] // T PK
	case 3:
		return append(key[:len(key)-1:len(key)-1], 2) // T PK 01 RK 02
	case 4:
		return key[:rnd.IntN(len(key)+1)]
	case 5:
		return append(key[:n:n], 0xFF)
	case 7:
		return append(key[:n-1:n-1], byte(rnd.IntN(256))) // T PK and another byte
	case 6:
		return codec.AppendKey(nil, 16, fmt.Sprintf("p%04d", rnd.IntN(3000)), fmt.Sprintf("%d", rnd.IntN(100)))
	}
	return key
}
