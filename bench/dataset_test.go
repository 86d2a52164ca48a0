package bench_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

func TestShapeOf(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{bench.Grid, 1_000_000, "1000x1000"},
		{bench.Grid, 2_500, "2x1000"},
		{bench.Grid, 300, "1x300"},
		{bench.Singles, 300, "300x1"},
		{bench.Whole, 300, "1x300"},
	} {
		got, err := bench.ShapeOf(c.name, c.n)
		if err != nil || got.String() != c.want {
			t.Errorf("ShapeOf(%q, %d) = %v, %v, want %s", c.name, c.n, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		n    int
	}{{bench.Grid, 0}, {"square", 10}} {
		if got, err := bench.ShapeOf(c.name, c.n); err == nil {
			t.Errorf("ShapeOf(%q, %d) = %v, want an error", c.name, c.n, got)
		}
	}
}

// entitiesOf returns all entities of a dataset.
func entitiesOf(d *bench.Dataset) []edm.Entity {
	out := bench.Batch(d.Len())
	for i := range out {
		d.Fill(i, i, &out[i])
	}
	return out
}

func TestDatasetIsDeterministic(t *testing.T) {
	race.SkipOneGoroutine(t)
	shape := bench.Shape{Partitions: 3, Rows: 50}
	a, b, c := bench.NewDataset(shape, 1), bench.NewDataset(shape, 1), bench.NewDataset(shape, 2)
	equal := cmp.Comparer(func(x, y edm.Value) bool { return x.Equal(y) })
	if diff := cmp.Diff(entitiesOf(a), entitiesOf(b), equal); diff != "" {
		t.Errorf("the same seed gives other entities:\n%s", diff)
	}
	if cmp.Equal(entitiesOf(a), entitiesOf(c), equal) {
		t.Error("seeds 1 and 2 give the same entities")
	}
	if diff := cmp.Diff(a.Order(5), b.Order(5)); diff != "" {
		t.Errorf("the same seed gives another order:\n%s", diff)
	}
}

// TestDatasetIsValid checks the entities against the rules of the data model, the order
// of keys, the documented size, and the share of entities that each Match selects.
func TestDatasetIsValid(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, shape := range []bench.Shape{{Partitions: 20, Rows: 1000}, {Partitions: 20_000, Rows: 1}, {Partitions: 1, Rows: 20_000}} {
		d := bench.NewDataset(shape, 1)
		var matches []*bench.Match
		for _, t := range bench.MatchedTypes() {
			matches = append(matches, d.Match(t))
		}
		matched := make([]int, len(matches))
		for i, e := range entitiesOf(d) {
			if err := store.CheckBatch("Telemetry", []store.Op{store.Insert(e)}, nil); err != nil {
				t.Fatalf("%v: entity %d: %v", shape, i, err)
			}
			if i > 0 && d.Key(i-1).Compare(e.Key) >= 0 || e.Key.Compare(d.Missing(i)) >= 0 {
				t.Fatalf("%v: keys %v, %v and missing %v do not ascend", shape, d.Key(max(0, i-1)), e.Key, d.Missing(i))
			}
			for at, m := range matches {
				is := m.Value(e.Properties[m.Prop].Value)
				if got := m.Expr.Match(e.View()); got != is {
					t.Fatalf("%v: %v is %v of entity %d, want %v", shape, m.Expr, got, i, is)
				}
				if is {
					matched[at]++
				}
			}
		}
		for at, m := range matches {
			if share := float64(matched[at]) / float64(d.Len()); share < 0.007 || share > 0.013 {
				t.Errorf("%v: %v is true of %.2f %%, want about 1 %%", shape, m.Expr, 100*share)
			}
		}
		if n := d.Bytes(); n < 220 || n > 280 {
			t.Errorf("%v: %.0f bytes an entity, want about 250", shape, n)
		}
	}
}

// TestFoldIncludesEveryProperty changes one property at a time and expects another sum.
func TestFoldIncludesEveryProperty(t *testing.T) {
	d := bench.NewDataset(bench.Shape{Partitions: 1, Rows: 2}, 1)
	other := bench.Batch(1)
	d.Fill(0, 1, &other[0])
	var first edm.Entity
	d.Fill(0, 0, &first)
	var all bench.Fold
	all.Row(first.View())
	want := all.Sum()
	for p := range bench.NumProps {
		var e edm.Entity
		d.Fill(0, 0, &e)
		if e.Properties[p].Value.Equal(other[0].Properties[p].Value) {
			b, _ := e.Properties[p].Value.Bool()
			e.Properties[p].Value = edm.Boolean(!b)
		} else {
			e.Properties[p].Value = other[0].Properties[p].Value
		}
		var f bench.Fold
		f.Row(e.View())
		if f.Sum() == want {
			t.Errorf("the sum does not change with %s", e.Properties[p].Name)
		}
	}
}

// TestFoldIncludesEveryByte changes one byte at a time of texts of all lengths.
func TestFoldIncludesEveryByte(t *testing.T) {
	sum := func(text []byte) uint64 {
		var f bench.Fold
		f.Bytes(edm.TypeString, text)
		f.End()
		return f.Sum()
	}
	for n := range 40 {
		text := bytes.Repeat([]byte{'a'}, n)
		seen := map[uint64]int{sum(text): -1}
		for at := range text {
			text[at] ^= 1
			s := sum(text)
			if other, ok := seen[s]; ok {
				t.Errorf("%d bytes: with byte %d changed the sum is that with byte %d changed", n, at, other)
			}
			seen[s] = at
			text[at] ^= 1
		}
	}
}

func TestReadDataset(t *testing.T) {
	shape := bench.Shape{Partitions: 3, Rows: 50}
	saved := bench.NewDataset(shape, 1)
	var file bytes.Buffer
	if err := saved.Save(&file); err != nil {
		t.Fatal(err)
	}
	data := file.Bytes()
	read, err := bench.ReadDataset(bytes.NewReader(data), shape)
	if err != nil {
		t.Fatal(err)
	}
	equal := cmp.Comparer(func(x, y edm.Value) bool { return x.Equal(y) })
	if diff := cmp.Diff(entitiesOf(saved), entitiesOf(read), equal); diff != "" {
		t.Errorf("the file has other entities:\n%s", diff)
	}
	if _, err := bench.ReadDataset(bytes.NewReader(data), bench.Shape{Partitions: 3, Rows: 51}); err == nil {
		t.Error("no error for another shape")
	}
	if _, err := bench.ReadDataset(bytes.NewReader(data[:len(data)-1]), shape); err == nil {
		t.Error("no error for a short file")
	}
}
