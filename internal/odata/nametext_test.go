package odata_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// TestNames encodes random entities with and without Names, which many of their names have to
// share slots of.
func TestNames(t *testing.T) {
	const seed = 14
	r := rand.New(rand.NewPCG(seed, seed))
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("P%03d", i), strings.Repeat("\u00f4", 1+i%60), strings.Repeat("n", 1+i%255))
	}
	names = append(names, "", "\"", "a", "b\\", "Name@odata.type")
	values := []edm.Value{
		edm.String("s"), edm.Int32(1), edm.Int64(2), edm.Double(1.5), edm.Double(math.NaN()), edm.Boolean(true), edm.DateTime(3),
		edm.Binary([]byte{4}), edm.Guid(edm.GUID{5}),
		{},
	}
	var cache odata.Names
	for range 3000 {
		e := edm.Entity{Timestamp: edm.Ticks(r.Int64N(int64(edm.MaxTicks)))}
		for range r.IntN(20) {
			e.Properties = append(e.Properties, edm.Property{Name: names[r.IntN(len(names))], Value: values[r.IntN(len(values))]})
		}
		o := odata.Options{Level: odata.Level(r.IntN(3)), ASCII: r.IntN(2) == 0}
		if r.IntN(4) == 0 {
			o.Select = []string{names[r.IntN(len(names))], "PartitionKey", names[r.IntN(len(names))]}
		}
		want := string(odata.AppendEntity(nil, e.View(), o))
		o.Names = &cache
		for range 2 {
			if got := string(odata.AppendEntity(nil, e.View(), o)); got != want {
				t.Fatalf("seed %d: with Names %s, without %s", seed, got, want)
			}
		}
	}
}
