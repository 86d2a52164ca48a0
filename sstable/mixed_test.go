package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
)

// mixed returns n rows of several shapes: some lack properties of typed, a few have a shape of
// their own, and "int" has two types.
func mixed(n int) []entry {
	list := typed(n)
	for i := range list {
		e := &list[i]
		var props edm.Properties
		for _, p := range e.props {
			switch {
			case i%5 == 1 && (p.Name == "double" || p.Name == "state" || p.Name == "id"):
			case i%5 == 2 && p.Name == "int":
				n, _ := p.Value.Int32()
				props = append(props, edm.Property{Name: "int", Value: edm.Int64(int64(n))})
			case i%5 == 3 && p.Name != "bool" && p.Name != "time" && p.Name != "text":
			default:
				props = append(props, p)
			}
		}
		if i%17 == 0 {
			props = append(props, edm.Property{Name: fmt.Sprintf("own%d", i%1000), Value: edm.Int64(int64(i))})
		}
		*e = newEntry(e.pk, e.rk, e.seq, false, props)
	}
	return sortEntries(list)
}

// TestChunksOfSeveralShapes runs filters over groups of several shapes three times. The third
// time, they load no head of a group without matches.
func TestChunksOfSeveralShapes(t *testing.T) {
	race.SkipOneGoroutine(t)
	entries := mixed(4000)
	o := writerOptions()
	o.GroupBytes = 12_000 // most shapes have enough rows for columns
	f, info := write(t, o, entries)
	compare := predicate.NewCompare
	for name, c := range map[string]struct {
		node  *predicate.Node
		heads bool // chunks do not suffice
	}{
		"double":       {node: compare("double", predicate.Gt, edm.Double(990))},
		"no double":    {node: predicate.NewNot(compare("double", predicate.Gt, edm.Double(0.5)))},
		"zero":         {node: compare("double", predicate.Lt, edm.Double(0.25))},
		"none":         {node: compare("zero", predicate.Gt, edm.Int64(0))},
		"bool":         {node: predicate.NewAnd(compare("bool", predicate.Eq, edm.Boolean(true)), compare("time", predicate.Lt, edm.DateTime(1<<58+100)))},
		"dictionary":   {node: compare("state", predicate.Eq, edm.String("half open"))},
		"empty text":   {node: compare("state", predicate.Eq, edm.String(""))},
		"other states": {node: predicate.NewNot(compare("state", predicate.Ge, edm.String("")))},
		"text":         {node: compare("text", predicate.Eq, edm.String("no text"))},
		"id before":    {node: compare("id", predicate.Lt, edm.String("user/000100"))},
		"not a text":   {node: compare("id", predicate.Ne, edm.Int32(0))},
		"no text":      {node: compare("text", predicate.Ge, edm.Int32(0))},
		"absent":       {node: compare("other", predicate.Ne, edm.Int64(0))},
		"own":          {node: compare("own17", predicate.Gt, edm.Int64(1000))},
		"timestamp":    {node: compare(edm.TimestampName, predicate.Gt, edm.DateTime(entries[3989].ts))},
		"two":          {node: predicate.NewAnd(compare("state", predicate.Eq, edm.String("open")), compare("double", predicate.Ge, edm.Double(990)))},
		"few, own":     {node: predicate.NewAnd(compare("double", predicate.Ge, edm.Double(990)), compare("own17", predicate.Ge, edm.Int64(0)))},
		"two, text":    {node: predicate.NewAnd(compare("double", predicate.Ge, edm.Double(990)), compare("state", predicate.Eq, edm.String("open")))},
		"few of two":   {node: predicate.NewAnd(compare("double", predicate.Ge, edm.Double(990)), compare("time", predicate.Ge, edm.DateTime(1<<58+3999)))},
		"either":       {node: predicate.NewOr(compare("double", predicate.Ge, edm.Double(999)), compare("id", predicate.Eq, edm.String("user/000004")))},
		"twice":        {node: predicate.NewOr(compare("state", predicate.Lt, edm.String("a")), compare("state", predicate.Gt, edm.String("n")))},
		"two types":    {node: compare("int", predicate.Eq, edm.Int32(1000)), heads: true},
		"keys":         {node: compare("RowKey", predicate.Eq, edm.String("000777")), heads: true},
	} {
		r := open(t, f, cache.New(8<<20))
		p := predicate.Compile(c.node)
		want, old, with := 0, 0, map[int]bool{}
		for i := range entries {
			if e := &entries[i]; p.Match(new(shaper).row(e)) {
				want++
				with[r.index.Seek(e.user)] = true
				if e.seq <= info.MaxSeq/2 {
					old++
				}
			}
		}
		free := len(r.index.Groups) - len(with)
		for pass := range 3 {
			selected, examined, headless := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, p, nil)
			if selected != want || examined != len(entries) {
				t.Errorf("%s, pass %d: %d of %d rows are selected, want %d of %d", name, pass, selected, examined, want, len(entries))
			}
			if pass == 2 && (c.heads && headless > 0 || !c.heads && headless < free-1) {
				t.Errorf("%s: no head was loaded for %d groups of %d without matches", name, headless, free)
			}
		}
		if selected, _, _ := selectAll(t, r, IterOptions{Snapshot: info.MaxSeq / 2, Fill: true}, p, nil); selected != old {
			t.Errorf("%s: %d rows of an older snapshot, want %d", name, selected, old)
		}
		if n := r.o.Cache.Close(); n != 0 {
			t.Errorf("%s: %d blocks are pinned at the end", name, n)
		}
	}
}

// TestChunksOfUnreadTexts selects by a number and a text, which is not read in groups without the
// number, and then by the text alone.
func TestChunksOfUnreadTexts(t *testing.T) {
	two := typed(2000) // of two shapes that both have enough rows for columns
	for i := range two {
		if e := &two[i]; i%2 == 0 {
			*e = newEntry(e.pk, e.rk, e.seq, false, e.props[:len(e.props)-1])
		}
	}
	o := writerOptions()
	o.GroupBytes = 12_000
	number := predicate.NewCompare("double", predicate.Lt, edm.Double(0))
	for name, entries := range map[string][]entry{"two": sortEntries(two), "many": mixed(2000)} {
		f, _ := write(t, o, entries)
		r := open(t, f, cache.New(8<<20))
		for _, text := range []*predicate.Node{
			predicate.NewCompare("text", predicate.Gt, edm.String("u")),
			predicate.NewCompare("state", predicate.Eq, edm.String("half open")),
		} {
			for pass, node := range []*predicate.Node{predicate.NewAnd(number, text), text, text} {
				selected, _, headless := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, predicate.Compile(node), nil)
				if selected != 0 || pass == 2 && headless < len(r.index.Groups)-1 {
					t.Errorf("%s shapes, pass %d: %d rows are selected, no head was loaded for %d groups of %d",
						name, pass, selected, headless, len(r.index.Groups))
				}
			}
		}
	}
}

// TestChunksOfManyTexts selects by a text of more values than a dictionary holds, in groups of many rows.
func TestChunksOfManyTexts(t *testing.T) {
	var list []entry
	for i := range 3000 {
		props := edm.Properties{{Name: "code", Value: edm.String(fmt.Sprint(1000 + i%300))}}
		if i%2 == 0 {
			props = append(props, edm.Property{Name: "even", Value: edm.Boolean(true)})
		}
		list = append(list, newEntry("p", fmt.Sprintf("%06d", i), uint64(i+1), false, props))
	}
	o := writerOptions()
	o.GroupBytes = 32 << 10
	f, _ := write(t, o, sortEntries(list))
	r := open(t, f, cache.New(8<<20))
	if rows := r.index.Groups[0].Rows; rows < 600 {
		t.Fatalf("%d rows in a group", rows)
	}
	for value, want := range map[string]int{"1299": 10, "1300": 0, "1000": 10} {
		p := predicate.Compile(predicate.NewCompare("code", predicate.Eq, edm.String(value)))
		for pass := range 3 {
			if selected, _, _ := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, p, nil); selected != want {
				t.Errorf("%s, pass %d: %d rows are selected, want %d", value, pass, selected, want)
			}
		}
	}
}

// TestSectionWithoutRows selects from a group that has a shape and no row of it, which no Writer writes.
func TestSectionWithoutRows(t *testing.T) {
	const rows = 40
	var list []entry
	for i := range rows {
		props := edm.Properties{{Name: "all", Value: edm.Int32(int32(i))}}
		if i%2 == 1 {
			props = append(props, edm.Property{Name: "number", Value: edm.Int32(1)}, edm.Property{Name: "text", Value: edm.String("a")})
		}
		list = append(list, newEntry("p", fmt.Sprintf("%06d", i), 1, false, props))
	}
	f, info := write(t, writerOptions(), sortEntries(list))
	data := bytesOf(t, f, info.Size)
	group := &open(t, f, nil).index.Groups[0]
	off := group.Off + int64(group.Before)
	head := data[off : group.Off+int64(group.HeadEnd())]
	content, sum := head[:len(head)-sumBytes], head[len(head)-sumBytes:]
	sections := bytes.Repeat([]byte{0, 1}, rows/2) // differences from the first section
	at := bytes.Index(content, sections)
	if at < 0 {
		t.Fatal("the sections of the rows are not found")
	}
	clear(content[at:][:rows])
	binary.LittleEndian.PutUint64(sum, checksum.Bind(testDB, testFile).Sum(content, off))
	r := open(t, fileOf(t, data), cache.New(1<<20))
	for name, value := range map[string]edm.Value{"number": edm.Int32(0), "text": edm.String("")} {
		p := predicate.Compile(predicate.NewCompare(name, predicate.Ge, value))
		for range 2 {
			if selected, examined, _ := selectAll(t, r, IterOptions{Snapshot: codec.MaxSeq, Fill: true}, p, nil); selected != 0 || examined != rows {
				t.Errorf("%s: %d of %d rows are selected, want 0 of %d", name, selected, examined, rows)
			}
		}
	}
}
