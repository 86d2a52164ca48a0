package rowgroup

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
)

// valueByValue hides that a row is a *codec.Row, so that Add asks it for each value.
type valueByValue struct{ codec.ShapedRow }

// TestAddEncoded builds groups of random rows of a few shapes, once from encoded rows
// and once value by value, and compares the bytes.
func TestAddEncoded(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	values := []func() edm.Value{
		func() edm.Value { return edm.String(strings.Repeat("é", r.IntN(30))) },
		func() edm.Value { return edm.String([]string{"", "red", "green"}[r.IntN(3)]) },
		func() edm.Value { return edm.Binary([]byte(fmt.Sprint(r.Uint64()))) },
		func() edm.Value { return edm.Boolean(r.IntN(2) == 0) },
		func() edm.Value { return edm.Int32(int32(r.Uint32())) },
		func() edm.Value { return edm.Int64(int64(r.Uint64())) },
		func() edm.Value { return edm.Double([]float64{math.NaN(), math.Inf(-1), r.NormFloat64()}[r.IntN(3)]) },
		func() edm.Value { return edm.DateTime(edm.Ticks(r.Int64N(int64(edm.MaxTicks)))) },
		func() edm.Value { return edm.GuidWords(r.Uint64(), r.Uint64()) },
		func() edm.Value { return edm.Binary(make([]byte, r.IntN(40)/39*r.IntN(2*bigValueBytes))) },
	}
	var whole, single Builder
	for round := range 100 {
		var kinds [3][]int
		for s := range kinds {
			kinds[s] = r.Perm(len(values))[:r.IntN(len(values))]
		}
		knownWhole, knownSingle := NewShapes(), NewShapes()
		shapes := make(map[int]*codec.Shape)
		for i := range 1 + r.IntN(100) {
			user := codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", i))
			partition := codec.PartitionLen(user)
			if i > 0 {
				partition = 0
			}
			s := r.IntN(len(kinds))
			var props edm.Properties
			for _, kind := range kinds[s] {
				props = append(props, edm.Property{Name: fmt.Sprint("p", kind), Value: values[kind]()})
			}
			if shapes[s] == nil {
				shapes[s] = codec.NewShape(props)
			}
			row := new(codec.Row)
			encoded, wide := codec.AppendValues(nil, shapes[s], props)
			row.Reset(user, edm.Ticks(1000+i), shapes[s], wide, encoded)
			for _, err := range []error{
				whole.Add(user, partition, false, uint64(i), row, knownWhole),
				single.Add(user, partition, false, uint64(i), valueByValue{row}, knownSingle),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if whole.Logical() != single.Logical() {
			t.Errorf("round %d: size %d from encoded rows, %d value by value", round, whole.Logical(), single.Logical())
		}
		got, _, _ := whole.AppendTo(nil, 4096, bound, compression.Fast)
		want, _, _ := single.AppendTo(nil, 4096, bound, compression.Fast)
		got, want = whole.AppendBounds(got, knownWhole, MaxBytes), single.AppendBounds(want, knownSingle, MaxBytes)
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d, round %d: groups of %d rows differ; repeat with go test -run %s ./sstable/internal/rowgroup", seed, round, whole.Rows(), t.Name())
		}
		whole.Reset()
		single.Reset()
	}
}
