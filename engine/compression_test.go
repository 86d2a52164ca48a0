package engine_test

import (
	"crypto/sha256"
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
// Both compress text that repeats. Text of hexadecimal digits repeats nothing, so that only
// CompressSmall compresses it.
func TestCompression(t *testing.T) {
	const rows, length = 2000, 240
	texts := map[string]func(r *rand.Rand) string{
		"repeats": func(r *rand.Rand) string {
			return fmt.Sprint(r.Uint32()) + strings.Repeat(" the same words", length/15)
		},
		"digits": func(r *rand.Rand) string {
			b := make([]byte, length/2)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return fmt.Sprintf("%x", b)
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
		fast, less := shares[engine.CompressFast], shares[engine.CompressSmall]
		t.Logf("%s: %.3f, with CompressSmall %.3f", name, fast, less)
		if name == "repeats" && (fast > 0.4 || less > 0.3) {
			t.Errorf("%s: the sstables have %.2f of the length of the texts, with CompressSmall %.2f; want at most 0.4 and 0.3", name, fast, less)
		}
		if name != "repeats" && (fast < 1 || less > 0.65) {
			t.Errorf("%s: the sstables have %.2f of the length of the texts, want at least 1; with CompressSmall %.2f, want at most 0.65", name, fast, less)
		}
	}
}

// TestCompressLater opens a database with the other compression than it was written with:
// Compact with CompressSmall makes its files smaller, and CompressFast reads them and writes
// beside them.
func TestCompressLater(t *testing.T) {
	fsys := vfs.NewMem()
	texts := make(map[string]string)
	write := func(db *engine.DB, prefix string) {
		for i := range 2000 {
			key := fmt.Sprintf("%s%06d", prefix, i)
			texts[key] = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: key}, Properties: edm.Properties{{Name: "Text", Value: edm.String(texts[key])}}}
			apply(t, db, store.InsertOrReplace(e))
		}
	}
	// compacted writes with a compression, compacts and returns the size of the sstables.
	compacted := func(c engine.Compression, prefix string) int64 {
		o := small(fsys)
		o.Compression = c
		db := mustOpen(t, "db", o)
		if len(texts) == 0 {
			check(t, "CreateTable", db.CreateTable(t.Context(), table))
		}
		if prefix != "" {
			write(db, prefix)
		}
		check(t, "Compact", db.Compact(t.Context()))
		for key, want := range texts {
			e, err := db.Get(t.Context(), table, edm.Key{Partition: "p", Row: key})
			if check(t, "Get", err); len(e.Properties) != 1 || e.Properties[0].Value.String() != edm.String(want).String() {
				t.Fatalf("%s is %v, want %s", key, e, want)
			}
		}
		report, err := db.Verify(t.Context())
		if err != nil || len(report.Findings) > 0 {
			t.Fatalf("Verify: %v, %v", report.Findings, err)
		}
		stats, err := db.Stats()
		check(t, "Stats", err)
		check(t, "Close", db.Close())
		return stats.SSTableBytes
	}
	fast := compacted(engine.CompressFast, "a")
	less := compacted(engine.CompressSmall, "")
	if less*10 > fast*7 {
		t.Errorf("Compact with CompressSmall made %d bytes of %d, want at most 0.7 of them", less, fast)
	}
	if again := compacted(engine.CompressSmall, ""); again != less {
		t.Errorf("Compact made %d bytes of %d", again, less)
	}
	if both := compacted(engine.CompressFast, "b"); both < less+fast/2 {
		t.Errorf("with as many entities that CompressFast wrote, %d bytes became %d", less, both)
	}
}
