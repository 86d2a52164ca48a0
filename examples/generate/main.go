// Command generate prints random entities with properties of all eight types as
// JSONL. Equal flags give equal entities. With command compare, it checks that a
// table returns the entities that were imported.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

func main() {
	n := flag.Int("n", 1000, "how many entities")
	seed := flag.Uint64("seed", 1, "another seed gives other entities")
	perPartition := flag.Int("rows", 1000, "entities in each partition")
	flag.Parse()
	if flag.NArg() > 0 || *n < 0 || *perPartition < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := generate(os.Stdout, *n, *perPartition, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(out io.Writer, n, perPartition int, seed uint64) error {
	w := bufio.NewWriterSize(out, 1<<20)
	g := rand.New(rand.NewPCG(seed, 0))
	var line []byte
	for i := range n {
		e := entity(g, i, perPartition)
		line = odata.AppendEntity(line[:0], e.View(), odata.Options{Level: odata.Minimal, OmitETag: true})
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return w.Flush()
}

// words are texts that an encoding can damage: quotes, commas, line feeds, leading
// zeros, characters beyond ASCII and beyond U+FFFF, the empty text.
var words = []string{
	"harbour", "north", "007", "", "it's", `a "quoted" word`, "one, two", "two\nlines", " spaces ", "größe", "東京", "😀", "true", "1e5", "\t",
}

// doubles and the others below are values at the limits of their types.
var (
	doubles = []float64{0, math.Copysign(0, -1), 1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 0.1}
	int32s  = []int32{0, 1, -1, math.MinInt32, math.MaxInt32}
	int64s  = []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 1<<53 + 1}
)

func pick[T any](g *rand.Rand, list []T) T { return list[g.IntN(len(list))] }

// entity returns entity i. One property in eight is absent, and one value in eight is
// at a limit of its type.
func entity(g *rand.Rand, i, perPartition int) edm.Entity {
	blob := make([]byte, g.IntN(64))
	for j := range blob {
		blob[j] = byte(g.Uint32())
	}
	real, small, large := g.NormFloat64()*100, int32(g.IntN(1000)), int64(g.Uint64()>>20)
	if g.IntN(8) == 0 {
		real, small, large = pick(g, doubles), pick(g, int32s), pick(g, int64s)
	}
	all := edm.Properties{
		{Name: "Site", Value: edm.String(pick(g, words))},
		{Name: "Note", Value: edm.String(strings.Join([]string{pick(g, words), pick(g, words), pick(g, words)}, " "))},
		{Name: "Payload", Value: edm.Binary(blob)},
		{Name: "Online", Value: edm.Boolean(g.IntN(2) == 0)},
		{Name: "Status", Value: edm.Int32(small)},
		{Name: "Counter", Value: edm.Int64(large)},
		{Name: "Temperature", Value: edm.Double(real)},
		{Name: "Measured", Value: edm.DateTime(edm.Ticks(133_500_000_000_000_000 + int64(i)*10_000_019))},
		{Name: "Session", Value: edm.GuidWords(g.Uint64(), g.Uint64())},
	}
	kept := all[:0]
	for _, p := range all {
		if g.IntN(8) > 0 {
			kept = append(kept, p)
		}
	}
	return edm.Entity{
		Key:        edm.Key{Partition: fmt.Sprintf("site-%06d", i/perPartition), Row: fmt.Sprintf("%08d", i%perPartition)},
		Properties: kept,
	}
}
