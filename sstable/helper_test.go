package sstable

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
)

var testDB = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

const testFile = 7

// entry is an entry of the model.
type entry struct {
	key   []byte // internal key
	user  []byte
	seq   uint64
	pk    string
	rk    string
	ts    edm.Ticks
	props edm.Properties // nil if del
	del   bool
}

func newEntry(pk, rk string, seq uint64, del bool, props edm.Properties) entry {
	user := codec.AppendKey(nil, 16, pk, rk)
	kind := codec.KindPut
	e := entry{user: user, seq: seq, pk: pk, rk: rk, del: del}
	if del {
		kind = codec.KindDelete
	} else {
		e.props, e.ts = props, edm.Ticks(1<<58+int64(seq)*977)
	}
	e.key = codec.AppendTrailer(slices.Clone(user), seq, kind)
	return e
}

// shaper makes rows with the same names and types share a shape, as in a memtable.
type shaper struct{ shapes []*codec.Shape }

func (s *shaper) row(e *entry) codec.ShapedRow {
	if e.del {
		return nil
	}
	i := slices.IndexFunc(s.shapes, func(s *codec.Shape) bool { return s.Matches(e.props) })
	if i < 0 {
		i = len(s.shapes)
		s.shapes = append(s.shapes, codec.NewShape(e.props))
	}
	values, wide := codec.AppendValues(nil, s.shapes[i], e.props)
	r := new(codec.Row)
	r.Reset(e.user, e.ts, s.shapes[i], wide, values)
	return r
}

func sortEntries(entries []entry) []entry {
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return slices.CompactFunc(entries, func(a, b entry) bool { return bytes.Equal(a.key, b.key) })
}

func create(t testing.TB) vfs.File {
	t.Helper()
	f, err := vfs.NewMem().Create("000007.sst")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func fileOf(t testing.TB, data []byte) vfs.File {
	t.Helper()
	f := create(t)
	if len(data) > 0 {
		if _, err := f.WriteAt(data, 0); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func bytesOf(t testing.TB, f vfs.File, n int64) []byte {
	t.Helper()
	p := make([]byte, n)
	if _, err := f.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

func writerOptions() WriterOptions { return WriterOptions{DBID: testDB, Number: testFile} }

func readerOptions(c *cache.Cache) ReaderOptions {
	return ReaderOptions{DBID: testDB, Number: testFile, Name: "000007.sst", Cache: c, CacheDB: 1}
}

func write(t testing.TB, o WriterOptions, entries []entry) (vfs.File, Info) {
	t.Helper()
	f := create(t)
	w := NewWriter(f, o)
	var s shaper
	for i := range entries {
		if err := w.Add(entries[i].key, s.row(&entries[i])); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return f, info
}

func open(t testing.TB, f vfs.File, c *cache.Cache) *Reader {
	t.Helper()
	r, err := Open(f, readerOptions(c))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// diff returns how row differs from e, "" if it does not.
func diff(e *entry, row codec.ShapedRow) string {
	if e.del != (row == nil) {
		return fmt.Sprintf("tombstone %t, want %t", row == nil, e.del)
	}
	if e.del {
		return ""
	}
	if k := row.Key(); k.Partition != e.pk || k.Row != e.rk {
		return fmt.Sprintf("key %q, want %q %q", k, e.pk, e.rk)
	}
	if row.Timestamp() != e.ts || row.Len() != len(e.props) || row.Shape().Len() != len(e.props) {
		return fmt.Sprintf("timestamp %v, %d properties, want %v, %d", row.Timestamp(), row.Len(), e.ts, len(e.props))
	}
	for i, p := range e.props {
		name, v := row.At(i)
		if name != p.Name || !v.Equal(p.Value) {
			return fmt.Sprintf("property %d: %q = %.80v, want %q = %.80v", i, name, v, p.Name, p.Value)
		}
		if v, ok := row.Lookup(p.Name); !ok || !v.Equal(p.Value) {
			return fmt.Sprintf("lookup of %q: %.80v %t, want %.80v", p.Name, v, ok, p.Value)
		}
	}
	if v, ok := row.Lookup("no such name"); ok {
		return fmt.Sprintf("lookup of a missing name gives %v", v)
	}
	return ""
}

// generator generates random entries.
type generator struct {
	*rand.Rand
	seq uint64
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 42)), seq: 1}
}

func (g *generator) text(n int) string {
	alphabet := []rune("abcdefghijklmnopqrstuvwxyz0123456789éß中\uE000\U0001F600")
	var b strings.Builder
	for range n {
		b.WriteRune(alphabet[g.IntN(len(alphabet))])
	}
	return b.String()
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g *generator) size() int {
	switch g.IntN(40) {
	case 0:
		return 4000 + g.IntN(300)
	case 1:
		return g.IntN(64 << 10)
	case 2, 3, 4:
		return 0
	}
	return g.IntN(30)
}

func (g *generator) value(t edm.Type) edm.Value {
	switch t {
	case edm.TypeString:
		if g.IntN(2) == 0 {
			return edm.String([]string{"red", "green", "blue", ""}[g.IntN(4)])
		}
		return edm.String(g.text(g.size() / 4))
	case edm.TypeBinary:
		return edm.Binary(g.bytes(g.size()))
	case edm.TypeBoolean:
		return edm.Boolean(g.IntN(2) == 0)
	case edm.TypeInt32:
		return edm.Int32(int32(g.Uint32() >> g.IntN(32)))
	case edm.TypeInt64:
		return edm.Int64(int64(g.Uint64()) >> g.IntN(64))
	case edm.TypeDouble:
		return edm.Double([]float64{math.NaN(), math.Inf(-1), 0, math.Copysign(0, -1), g.NormFloat64(), 1.5}[g.IntN(6)])
	case edm.TypeDateTime:
		return edm.DateTime(edm.Ticks(g.Int64N(int64(edm.MaxTicks) + 1)))
	}
	return edm.GuidWords(g.Uint64()>>(64*g.IntN(2)), g.Uint64())
}

// props returns properties of one of several shapes. Sections of few shapes are stored
// as columns, those of many shapes by row.
func (g *generator) props(shapes int) edm.Properties {
	kind := g.IntN(shapes)
	sub := newGenerator(uint64(kind) * 77)
	var props edm.Properties
	for i := range sub.IntN(14) {
		if kind > 0 && sub.IntN(4) == 0 {
			continue
		}
		props = append(props, edm.Property{Name: fmt.Sprintf("p%d", i), Value: g.value(edm.Type(1 + (i+sub.IntN(2)*kind)%8))})
	}
	return props
}

// entries returns about n sorted entries over random keys, some with several
// versions.
func (g *generator) entries(n, partitions, shapes int) []entry {
	var all []entry
	for len(all) < n {
		pk, rk := fmt.Sprintf("p%d", g.IntN(partitions)), fmt.Sprintf("%013d", g.IntN(4*n))
		switch g.IntN(12) {
		case 0:
			rk = g.text(g.IntN(40))
		case 1:
			pk, rk = g.text(g.IntN(3)), ""
		}
		versions := 1
		if g.IntN(20) == 0 {
			versions = 1 + g.IntN(6)
		}
		for range versions {
			g.seq += uint64(g.IntN(3))
			all = append(all, newEntry(pk, rk, g.seq, g.IntN(10) == 0, g.props(shapes)))
		}
	}
	return sortEntries(all)
}

// rounds returns n, or fewer with the race detector, which makes each round ten times
// slower.
func rounds(n int) int {
	if race.Enabled {
		return n/8 + 1
	}
	return n
}
