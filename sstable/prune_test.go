package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
)

// condition returns a random program over the properties of entries.
func (g *generator) condition(entries []entry, depth int) *predicate.Node {
	if depth > 0 && g.IntN(2) == 0 {
		a, b := g.condition(entries, depth-1), g.condition(entries, depth-1)
		switch g.IntN(3) {
		case 0:
			return predicate.NewAnd(a, b)
		case 1:
			return predicate.NewOr(a, b)
		}
		return predicate.NewNot(a)
	}
	ops := []predicate.Op{predicate.Eq, predicate.Ne, predicate.Lt, predicate.Le, predicate.Gt, predicate.Ge}
	op := ops[g.IntN(len(ops))]
	e := &entries[g.IntN(len(entries))]
	if len(e.props) == 0 || g.IntN(8) == 0 {
		return predicate.NewCompare(edm.TimestampName, op, edm.DateTime(e.ts))
	}
	p := e.props[g.IntN(len(e.props))]
	if g.IntN(3) == 0 {
		p.Value = g.value(p.Value.Type())
	}
	if p.Value.Type() == edm.TypeString && g.IntN(3) == 0 { // one of several texts
		op, join := predicate.Eq, predicate.NewOr
		if g.IntN(2) == 0 {
			op, join = predicate.Ne, predicate.NewAnd
		}
		kids := []*predicate.Node{predicate.NewCompare(p.Name, op, p.Value)}
		for range g.IntN(20) {
			v, ok := entries[g.IntN(len(entries))].props.Lookup(p.Name)
			if !ok || v.Type() != edm.TypeString {
				v = g.value(edm.TypeString)
			}
			kids = append(kids, predicate.NewCompare(p.Name, op, v))
		}
		return join(kids...)
	}
	return predicate.NewCompare(p.Name, op, p.Value)
}

func TestBoundsExcludeGroups(t *testing.T) {
	entries := uniform(4000)
	o := writerOptions()
	o.GroupBytes = 2000
	f, _ := write(t, o, entries)
	r := open(t, f, nil)
	for name, c := range map[string]struct {
		node *predicate.Node
		most int
	}{
		"number":       {predicate.NewCompare("a", predicate.Gt, edm.Int64(3900)), 200},
		"text":         {predicate.NewCompare("s", predicate.Eq, edm.String("value number 9000000 of some length")), 200},
		"guid":         {predicate.NewCompare("g", predicate.Lt, edm.GuidWords(90, 0)), 200},
		"timestamp":    {predicate.NewCompare(edm.TimestampName, predicate.Le, edm.DateTime(entries[50].ts)), 200},
		"no such name": {predicate.NewCompare("b", predicate.Eq, edm.Int64(1)), 0},
		"other type":   {predicate.NewCompare("a", predicate.Eq, edm.String("x")), 0},
		"all":          {predicate.NewCompare("a", predicate.Ge, edm.Int64(0)), 4000},
	} {
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Prune: predicate.Compile(c.node)})
		n := 0
		for span, ok := it.SpanGE(nil); ok; span, ok = it.SpanAfter(&span) {
			if !it.Excludes(&span) {
				n += span.Rows
			}
		}
		if err := it.Close(); err != nil || n > c.most || n == 0 && c.most > 0 {
			t.Errorf("%s: the bounds do not exclude %d of %d rows, want at most %d, error %v", name, n, len(entries), c.most, err)
		}
	}
}

// TestBoundsOfManyColumns looks in each column of files with about as many as have bounds. Nothing
// is known of the values of a column beyond these.
func TestBoundsOfManyColumns(t *testing.T) {
	const most = groupbounds.MaxColumns
	for _, n := range []int{most - 1, most, most + 1, most + 40} {
		var list []entry
		for i := range n {
			props := edm.Properties{{Name: fmt.Sprint("c", i), Value: edm.String("x")}}
			list = append(list, newEntry("p", fmt.Sprintf("%04d", i), uint64(i+1), false, props))
		}
		o := writerOptions()
		o.GroupBytes = 500
		f, _ := write(t, o, sortEntries(list))
		r := open(t, f, nil)
		for i := range n + 1 { // the last column is of no row
			p := predicate.Compile(predicate.NewCompare(fmt.Sprint("c", i), predicate.Eq, edm.String("x")))
			it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Prune: p})
			if it.pruner == nil {
				it.prune()
			}
			kept, found := 0, false
			for span, ok := it.SpanGE(nil); ok; span, ok = it.SpanAfter(&span) {
				if !it.Excludes(&span) {
					kept++
					found = found || i < n && bytes.Compare(span.Lower, list[i].user) <= 0 && (span.Upper == nil || bytes.Compare(list[i].user, span.Upper) < 0)
				}
			}
			want := len(r.index.Groups)
			switch {
			case i < min(n, most):
				want = 1
			case n < most:
				want = 0
			}
			if err := it.Close(); err != nil || kept != want || found != (i < n) {
				t.Errorf("column %d of %d: the bounds do not exclude %d groups, want %d, found %t, error %v", i, n, kept, want, found, err)
			}
		}
	}
}

// TestBoundsAreWorthReading reads no bounds before few groups, or none.
func TestBoundsAreWorthReading(t *testing.T) {
	entries := uniform(4000)
	o := writerOptions()
	o.GroupBytes = 2000
	f, _ := write(t, o, entries)
	bounds := open(t, f, nil).footer.bounds
	data := &brokenFile{File: f, from: int64(bounds.off), to: int64(bounds.end())}
	r := open(t, data, nil)
	whole := IterOptions{Snapshot: codec.MaxSeq, Prune: predicate.Compile(predicate.NewConst(true))}
	narrow := whole
	narrow.Lower, narrow.Upper = entries[10].user, entries[20].user
	for _, c := range []struct {
		what string
		o    IterOptions
		rows int
	}{{"whole file", whole, 0}, {"ten rows", narrow, 10}} {
		it, n := r.NewIterator(c.o), 0
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
			n++
		}
		if err := it.Close(); n != c.rows || (err == nil) != (n > 0) {
			t.Errorf("%s: %d rows, error %v, want %d rows", c.what, n, err, c.rows)
		}
	}
	f, _ = write(t, o, nil)
	if it := open(t, f, nil).NewIterator(whole); it.SeekGE(nil) || it.Close() != nil {
		t.Errorf("empty file: error %v", it.Err())
	}
}

// prunable returns a file whose bounds an iterator with Prune reads.
func prunable(t *testing.T) []byte {
	o := writerOptions()
	o.GroupBytes = 2000
	f, info := write(t, o, uniform(200))
	return bytesOf(t, f, info.Size)
}

// TestDamagedBounds flips bits of the bounds: an iterator with Prune must not use them.
func TestDamagedBounds(t *testing.T) {
	data := prunable(t)
	r := open(t, fileOf(t, data), nil)
	for at := r.footer.bounds.off; at < r.footer.bounds.end(); at++ {
		p := bytes.Clone(data)
		p[at] ^= 4
		it := open(t, fileOf(t, p), nil).NewIterator(IterOptions{Snapshot: codec.MaxSeq, Prune: predicate.Compile(predicate.NewConst(true))})
		if it.SeekGE(nil) {
			t.Fatalf("byte %d: a row is shown", at)
		}
		wantCorrupt(t, it.Close(), fmt.Sprint("byte ", at))
	}
}

// TestUnreadableBounds fails to read the bounds, and reads them at a second attempt.
func TestUnreadableBounds(t *testing.T) {
	data := prunable(t)
	f := &brokenFile{File: fileOf(t, data)}
	r := open(t, f, nil)
	f.from, f.to = int64(r.footer.bounds.off), int64(r.footer.bounds.end())
	p := predicate.Compile(predicate.NewConst(true))
	it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Prune: p})
	if it.SeekGE(nil) || !errors.Is(it.Err(), errBroken) || !errors.Is(it.Close(), errBroken) {
		t.Fatalf("error %v", it.Err())
	}
	f.to = 0
	it = r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Prune: p})
	if !it.SeekGE(nil) || it.Close() != nil {
		t.Fatalf("error %v", it.Err())
	}
}
