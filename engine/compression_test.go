package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestCompression compares the sstables of each Options.Compression with their texts.
// Both compress text that repeats. Text of which a sixth repeats gets shorter by less than a
// sixth, so that only CompressSmall compresses it.
func TestCompression(t *testing.T) {
	const rows, length = 2000, 240
	texts := map[string]func(r *rand.Rand) string{
		"repeats": func(r *rand.Rand) string {
			return fmt.Sprint(r.Uint32()) + strings.Repeat(" the same words", length/15)
		},
		"a sixth repeats": func(r *rand.Rand) string {
			b := make([]byte, length*5/6)
			for i := range b {
				b[i] = byte(' ' + r.IntN(95))
			}
			return string(b) + strings.Repeat("=", length/6)
		},
	}
	for name, text := range texts {
		var shares [2]float64 // of the length of the texts
		for _, c := range []engine.Compression{engine.CompressFast, engine.CompressSmall} {
			o := small(vfs.NewMem())
			o.Compression = c
			db := mustCreate(t, o)
			r, sum := rand.New(rand.NewPCG(1, 1)), 0
			for i := range rows {
				s := text(r)
				sum += len(s)
				e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)}, Properties: edm.Properties{{Name: "Text", Value: edm.String(s)}}}
				apply(t, db, store.InsertOrReplace(e))
			}
			check(t, "Compact", db.Compact(t.Context()))
			stats, err := db.Stats()
			check(t, "Stats", err)
			shares[c] = float64(stats.SSTableBytes) / float64(sum)
		}
		fast, better := shares[engine.CompressFast], shares[engine.CompressSmall]
		t.Logf("%s: %.3f, with CompressSmall %.3f", name, fast, better)
		if name == "repeats" && (fast > 0.4 || better > 0.4) {
			t.Errorf("%s: the sstables have %.2f of the length of the texts, with CompressSmall %.2f; want at most 0.4", name, fast, better)
		}
		if name != "repeats" && (fast < 1 || better > fast-0.08) {
			t.Errorf("%s: the sstables have %.2f of the length of the texts, want at least 1; with CompressSmall %.2f, want 0.08 less", name, fast, better)
		}
	}
}
