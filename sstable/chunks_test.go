package sstable

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/columnchunk"
	"github.com/tablerock-db/tablerock/vfs"
)

// typed returns n rows of one shape with values of the types that chunks hold.
func typed(n int) []entry {
	var list []entry
	for i := range n {
		list = append(list, newEntry("p", fmt.Sprintf("%06d", i), uint64(i+1), false, edm.Properties{
			{Name: "bool", Value: edm.Boolean(i%3 == 0)},
			{Name: "double", Value: edm.Double(float64(i) / 4)},
			{Name: "id", Value: edm.String(fmt.Sprintf("user/%06d", i))},
			{Name: "int", Value: edm.Int32(int32(i%200 - 100))},
			{Name: "long", Value: edm.String(fmt.Sprintf("%070d/%d", 0, i))},
			{Name: "state", Value: edm.String([]string{"", "open", "closed"}[i%3])},
			{Name: "text", Value: edm.String(fmt.Sprintf("text number %d of some length", i*i))},
			{Name: "time", Value: edm.DateTime(edm.Ticks(1<<58 + i))},
			{Name: "uneven", Value: edm.String(strconv.Itoa(i * i % 10007))},
			{Name: "zero", Value: edm.Int64(0)},
		}))
	}
	return sortEntries(list)
}

// replaced returns typed rows, of which some have several versions, some are deleted, and some have
// only tombstones beside them.
func replaced(n int) []entry {
	list := typed(n)
	for i := range n {
		e, seq := list[i], uint64(2*n+i)
		switch at := i % 200; {
		case at < 100:
		case at < 130 && i%7 == 0:
			list = append(list, newEntry(e.pk, e.rk, seq, false, list[(i+11)%n].props))
		case at == 140:
			for v := range 100 {
				list = append(list, newEntry(e.pk, e.rk, seq+uint64(n+v), false, list[(i+v)%n].props))
			}
		case at > 150:
			for v := range 4 {
				list = append(list, newEntry(e.pk, e.rk+string(rune('a'+v)), seq, true, nil))
			}
		}
	}
	return sortEntries(list)
}

// selectAll selects from all groups of r, from some of them in two windows that end and begin at
// a key of cuts. It returns how many rows were selected and looked at, and how many groups
// without a match were not loaded.
func selectAll(t *testing.T, r *Reader, o IterOptions, p *predicate.Program, cuts map[int][]byte) (selected, examined, headless int) {
	t.Helper()
	o.Upper = codec.AppendTable(nil, 1<<30)
	it, sel := r.NewIterator(o), NewSelector(p)
	for span, ok := it.SpanGE(nil); ok; span, ok = it.SpanAfter(&span) {
		before, found := it.g, 0
		lower := span.Lower
		for _, upper := range [][]byte{cuts[span.first], span.Upper} {
			if upper == nil {
				continue
			}
			n, looked, err := it.Select(&span, &Window{Lower: lower, Upper: upper, End: o.Upper}, sel)
			if err != nil {
				t.Fatal(err)
			}
			found += n
			examined += looked
			lower = upper
		}
		selected += found
		if found == 0 && it.g == before {
			headless++
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return selected, examined, headless
}

// TestSelectFromChunks runs filters several times. From the second time on, they load no head
// of a group without matches.
func TestSelectFromChunks(t *testing.T) {
	race.SkipOneGoroutine(t)
	entries := typed(4000)
	o := writerOptions()
	o.GroupBytes = 4000
	f, info := write(t, o, entries)
	groups := len(open(t, f, nil).index.Groups)
	if groups < 3*columnchunk.Groups || groups%columnchunk.Groups == 0 {
		t.Fatalf("%d groups", groups)
	}
	compare := predicate.NewCompare
	for name, c := range map[string]struct {
		node  *predicate.Node
		match func(i int) bool // of entries
		heads int              // the first passes that need the heads of all groups
	}{
		"double":     {compare("double", predicate.Gt, edm.Double(990)), func(i int) bool { return i > 3960 }, 0},
		"none":       {compare("double", predicate.Lt, edm.Double(0)), func(int) bool { return false }, 0},
		"int":        {compare("int", predicate.Eq, edm.Int32(-7)), func(i int) bool { return i%200 == 93 }, 0},
		"not":        {predicate.NewNot(compare("int", predicate.Ne, edm.Int32(-7))), func(i int) bool { return i%200 == 93 }, 0},
		"dictionary": {compare("state", predicate.Eq, edm.String("half open")), func(int) bool { return false }, 0},
		"empty":      {compare("state", predicate.Lt, edm.String("a")), func(i int) bool { return i%3 == 0 }, 0},
		"time":       {compare("time", predicate.Le, edm.DateTime(1<<58+9)), func(i int) bool { return i < 10 }, 0},
		"timestamp":  {compare(edm.TimestampName, predicate.Gt, edm.DateTime(entries[3989].ts)), func(i int) bool { return i > 3989 }, 0},
		"constant":   {compare("zero", predicate.Gt, edm.Int64(0)), func(int) bool { return false }, 0},
		"absent":     {compare("other", predicate.Ne, edm.Int64(0)), func(int) bool { return false }, 0},
		"not absent": {predicate.NewNot(compare("other", predicate.Eq, edm.Int64(0))), func(int) bool { return true }, 0},
		"other type": {compare("int", predicate.Eq, edm.String("x")), func(int) bool { return false }, 0},
		"no text":    {compare("text", predicate.Ge, edm.Int32(0)), func(int) bool { return false }, 0},
		"not a text": {predicate.NewNot(compare("text", predicate.Ge, edm.Int32(0))), func(int) bool { return true }, 0},
		"either text": {
			predicate.NewOr(compare("text", predicate.Eq, edm.String("no text")), compare("text", predicate.Ne, edm.Int32(0))),
			func(int) bool { return true }, 2,
		},
		"two columns": {
			predicate.NewAnd(compare("bool", predicate.Eq, edm.Boolean(true)), compare("double", predicate.Ge, edm.Double(990))),
			func(i int) bool { return i%3 == 0 && i >= 3960 }, 0,
		},
		"either": {
			predicate.NewOr(compare("time", predicate.Lt, edm.DateTime(1<<58+3)), compare("double", predicate.Ge, edm.Double(999))),
			func(i int) bool { return i < 3 || i >= 3996 }, 0,
		},
		"text": {compare("text", predicate.Eq, edm.String("no text")), func(int) bool { return false }, 2},
		"id":   {compare("id", predicate.Eq, edm.String("user/000777")), func(i int) bool { return i == 777 }, 2},
		"states": {
			predicate.NewOr(compare("state", predicate.Eq, edm.String("half open")), compare("state", predicate.Eq, edm.String("closed"))),
			func(i int) bool { return i%3 == 2 }, 0,
		},
		"other states": {
			predicate.NewAnd(compare("state", predicate.Ne, edm.String("open")), compare("state", predicate.Ne, edm.String("closed"))),
			func(i int) bool { return i%3 == 0 }, 0,
		},
		"other ids": {
			predicate.NewNot(predicate.NewOr(compare("id", predicate.Eq, edm.String("x")), compare("id", predicate.Eq, edm.String("y")))),
			func(int) bool { return true }, 1,
		},
		"ids": {
			predicate.NewOr(compare("id", predicate.Eq, edm.String("user/000777")), compare("id", predicate.Eq, edm.String("user/003001")),
				compare("id", predicate.Eq, edm.String("user"))),
			func(i int) bool { return i == 777 || i == 3001 }, 1,
		},
		"keys": {
			predicate.NewOr(compare("RowKey", predicate.Eq, edm.String("000777")), compare("RowKey", predicate.Eq, edm.String("003001"))),
			func(i int) bool { return i == 777 || i == 3001 }, 3,
		},
		"id of none": {compare("id", predicate.Eq, edm.String("user/000777x")), func(int) bool { return false }, 2},
		"short id":   {compare("id", predicate.Lt, edm.String("user")), func(int) bool { return false }, 1},
		"id before":  {compare("id", predicate.Lt, edm.String("user/000100")), func(i int) bool { return i < 100 }, 1},
		"not before": {predicate.NewNot(compare("id", predicate.Lt, edm.String("user/003900"))), func(i int) bool { return i >= 3900 }, 1},
		"other id":   {predicate.NewNot(compare("id", predicate.Ne, edm.String("user/000100"))), func(i int) bool { return i == 100 }, 1},
		"uneven":     {compare("uneven", predicate.Le, edm.String("0")), func(i int) bool { return i == 0 }, 1},
		"long":       {compare("long", predicate.Lt, edm.String("0")), func(int) bool { return false }, 1},
		"id range": {
			predicate.NewAnd(compare("id", predicate.Ge, edm.String("user/000100")), compare("id", predicate.Le, edm.String("user/000177"))),
			func(i int) bool { return i >= 100 && i <= 177 }, 1,
		},
		"beyond BMP": {compare("id", predicate.Ge, edm.String("\U0001F600")), func(int) bool { return false }, 3},
		"text and int": {
			predicate.NewAnd(compare("int", predicate.Eq, edm.Int32(-7)), compare("text", predicate.Gt, edm.String(""))),
			func(i int) bool { return i%200 == 93 }, 0,
		},
	} {
		r := open(t, f, cache.New(8<<20))
		want, without, cuts := 0, map[int]bool{}, map[int][]byte{}
		for g := range groups {
			without[g] = true
		}
		for i := range entries {
			g := r.index.Seek(entries[i].user)
			if c.match(i) {
				want++
				delete(without, g)
			}
			if g%3 == 0 && i%7 == 0 {
				cuts[g] = entries[i].user
			}
		}
		p := predicate.Compile(c.node)
		for pass := range 3 {
			selected, examined, headless := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, p, cuts)
			if selected != want || examined != len(entries) {
				t.Errorf("%s, pass %d: %d of %d rows are selected, want %d of %d", name, pass, selected, examined, want, len(entries))
			}
			switch free := len(without); {
			case pass >= max(c.heads, 1) && headless < free-1: // the few rows of the last group are no columns
				t.Errorf("%s, pass %d: no head was loaded for %d groups, want %d", name, pass, headless, free-1)
			case pass < c.heads && headless > 0:
				t.Errorf("%s, pass %d: no head was loaded for %d groups", name, pass, headless)
			}
		}
		old := 0
		for i := range entries {
			if c.match(i) && entries[i].seq <= info.MaxSeq/2 {
				old++
			}
		}
		if selected, _, _ := selectAll(t, r, IterOptions{Snapshot: info.MaxSeq / 2, Fill: true}, p, cuts); selected != old {
			t.Errorf("%s: %d rows of an older snapshot, want %d", name, selected, old)
		}
		if _, _, headless := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq}, p, cuts); headless > 0 {
			t.Errorf("%s: a query that does not fill the cache used chunks", name)
		}
		if n := r.o.Cache.Close(); n != 0 {
			t.Errorf("%s: %d blocks are pinned at the end", name, n)
		}
	}
}

// TestSelectSharesChunks compares queries with a model. Each adds to chunks that the next ones use.
func TestSelectSharesChunks(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := writerOptions()
	var files []vfs.File
	var infos []Info
	models := [][]entry{typed(3000), replaced(1000), mixed(3000)}
	o.GroupBytes = 2500
	for _, entries := range models {
		f, info := write(t, o, entries)
		files, infos = append(files, f), append(infos, info)
	}
	for seed := range uint64(rounds(24)) {
		i := seed % uint64(len(models))
		entries, info := models[i], infos[i]
		g, r := newGenerator(seed), open(t, files[i], cache.New(8<<20))
		var it Iterator
		var row Row
		for n := range 3 * arrangeAfter * len(entries) / 10 * int(seed%2) { // arranges heads
			e := &entries[n*10%len(entries)]
			if _, _, _, err := r.Get(e.user, codec.KeyHash(e.user), codec.MaxSeq, &row); err != nil {
				t.Fatal(err)
			}
		}
		row.Release()
		for range 40 {
			o := IterOptions{Upper: codec.AppendTable(nil, 1<<30), Snapshot: codec.MaxSeq, Fill: true}
			if g.IntN(2) == 0 {
				o.Lower, o.Upper = g.bound(entries), entries[g.IntN(len(entries))].user
			}
			if g.IntN(3) == 0 {
				o.Snapshot = 1 + g.Uint64N(info.MaxSeq+1)
			}
			p := predicate.Compile(g.condition(entries, g.IntN(4)))
			compareSelect(t, g, r, &it, entries, o, p, NewSelector(p))
		}
		if n := r.o.Cache.Close(); n != 0 {
			t.Errorf("seed %d: %d blocks are pinned at the end", seed, n)
		}
	}
}

// TestChunksOfConjunctions selects by a text first in some rows of a group and then in all.
func TestChunksOfConjunctions(t *testing.T) {
	entries := typed(1000)
	o := writerOptions()
	o.GroupBytes = 4000
	f, _ := write(t, o, entries)
	texts := predicate.NewCompare("uneven", predicate.Le, edm.String("194"))
	for name, node := range map[string]*predicate.Node{
		"every other group": predicate.NewCompare("int", predicate.Lt, edm.Int32(0)),
		"first half":        predicate.NewCompare("double", predicate.Lt, edm.Double(125)),
		"third rows":        predicate.NewCompare("state", predicate.Eq, edm.String("open")),
	} {
		r := open(t, f, cache.New(8<<20))
		for pass := range 6 {
			p, want := predicate.Compile(texts), 0
			if pass%3 < 2 {
				p = predicate.Compile(predicate.NewAnd(node, texts))
			}
			for i := range entries {
				if p.Match(new(shaper).row(&entries[i])) {
					want++
				}
			}
			if n, _, _ := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, p, nil); n != want {
				t.Errorf("%s, pass %d: %d rows are selected, want %d", name, pass, n, want)
			}
		}
	}
}

// TestChunksAreCompleted selects from groups that begin or end within a chunk, and then from all:
// the second query of all groups finds the values of each but the last in chunks.
func TestChunksAreCompleted(t *testing.T) {
	w := writerOptions()
	w.GroupBytes = 4000
	f, _ := write(t, w, typed(2500))
	for name, node := range map[string]*predicate.Node{
		"text":  predicate.NewCompare("text", predicate.Eq, edm.String("no text")),
		"words": predicate.NewCompare("double", predicate.Lt, edm.Double(0)),
	} {
		p := predicate.Compile(node)
		for most := range columnchunk.Groups + 1 {
			r := open(t, f, cache.New(8<<20))
			all := r.index.Groups
			o := IterOptions{Snapshot: codec.MaxSeq, Fill: true}
			if name == "text" {
				selectAll(t, r, o, p, nil) // without texts
			}
			for range 2 {
				it, sel := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true, Upper: codec.AppendTable(nil, 1<<30)}), NewSelector(p)
				for span, ok := it.SpanGE(nil); ok && span.first < most; span, ok = it.SpanAfter(&span) {
					if _, _, err := it.Select(&span, &Window{Lower: span.Lower, Upper: span.Upper}, sel); err != nil {
						t.Fatal(err)
					}
				}
				if err := it.Close(); err != nil {
					t.Fatal(err)
				}
			}
			selectAll(t, r, o, p, nil)
			if _, _, headless := selectAll(t, r, o, p, nil); headless != len(all)-1 {
				t.Errorf("%s, %d groups first: no head was loaded for %d groups of %d", name, most, headless, len(all))
			}
		}
	}
}

// TestLongChunks selects from groups of many rows, whose columns have more than MaxBytes.
func TestLongChunks(t *testing.T) {
	race.SkipOneGoroutine(t)
	var list []entry
	for i := range 40_000 {
		list = append(list, newEntry("p", fmt.Sprintf("%06d", i), uint64(i+1), false, edm.Properties{
			{Name: "mail", Value: edm.String(fmt.Sprintf("u%05d", i*7919%40_000))},
			{Name: "n", Value: edm.Int64(int64(uint64(i) * 0x9E3779B97F4A7C15))},
		}))
	}
	entries := sortEntries(list)
	f, _ := write(t, writerOptions(), entries)
	for name, value := range map[string]edm.Value{"mail": edm.String("u39999"), "n": list[39_999].props[1].Value} {
		r := open(t, f, cache.New(8<<20))
		p := predicate.Compile(predicate.NewCompare(name, predicate.Eq, value))
		var last int
		for pass := range 4 {
			selected, examined, headless := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, p, nil)
			if selected != 1 || examined != len(entries) {
				t.Errorf("%s, pass %d: %d of %d rows are selected", name, pass, selected, examined)
			}
			if pass == 3 && (headless != last || headless < len(r.index.Groups)/4 || headless > len(r.index.Groups)*9/10) {
				t.Errorf("%s: no head was loaded for %d groups of %d, and before for %d", name, headless, len(r.index.Groups), last)
			}
			last = headless
		}
	}
}
