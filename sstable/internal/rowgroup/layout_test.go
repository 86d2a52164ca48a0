package rowgroup

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
)

// TestUnitCompression writes groups of random bytes and then groups of text. Fast stores the
// first units of the text raw, because it tries few of the random ones, and compresses the
// others. Small compresses all text.
func TestUnitCompression(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func() string {
		b := make([]byte, 200)
		for i := range b {
			b[i] = byte('!' + r.IntN(90))
		}
		return string(b)
	}
	text := func() string { return fmt.Sprint(r.Uint32()) + strings.Repeat(" the same words", 12) }
	for _, comp := range []compression.Method{compression.Fast, compression.Small} {
		var g Builder
		shapes := NewShapes()
		props := edm.Properties{{Name: "p", Value: edm.String("")}}
		shape := codec.NewShape(props)
		row := 0
		// units adds a group and returns its units, and how many of them are compressed.
		units := func(value func() string) (all, compressed int) {
			for range 100 {
				user := codec.AppendKey(nil, 16, "p", fmt.Sprintf("%06d", row))
				partition := codec.PartitionLen(user)
				if g.Rows() > 0 {
					partition = 0
				}
				props[0].Value = edm.String(value())
				encoded, wide := codec.AppendValues(nil, shape, props)
				v := new(codec.Row)
				v.Reset(user, 1, shape, wide, encoded)
				if err := g.Add(user, partition, false, uint64(row+1), v, shapes); err != nil {
					t.Fatal(err)
				}
				row++
			}
			g.AppendTo(nil, 4096, bound, comp)
			for _, u := range g.HeapUnits() {
				all++
				if u.Stored < u.Raw {
					compressed++
				}
			}
			g.Reset()
			return all, compressed
		}
		for range 20 {
			want := 0
			all, compressed := units(random)
			if comp == compression.Small {
				want = all // the bytes are printable
			}
			if all < 2 || compressed != want {
				t.Errorf("compression %d: %d of %d units of random bytes are compressed", comp, compressed, all)
			}
		}
		if comp == compression.Fast && g.skipped != maxSkip {
			t.Errorf("after 20 groups of random bytes %d units are not tried, want %d", g.skipped, maxSkip)
		}
		raw := 0
		for range 20 {
			all, compressed := units(text)
			raw += all - compressed
		}
		if comp == compression.Small && raw > 0 || raw > maxSkip {
			t.Errorf("compression %d: %d units of text are raw", comp, raw)
		}
		if comp == compression.Fast && g.skipped != 0 {
			t.Errorf("after groups of text %d units are not tried, want 0", g.skipped)
		}
	}
}

// TestOnlyDictionaries builds a group whose Strings are all in dictionaries: it has no heap.
func TestOnlyDictionaries(t *testing.T) {
	var users [][]byte
	for i := range minColumnRows {
		users = append(users, codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", i)))
	}
	h, _ := build(t, users, func(i int) edm.Properties {
		return edm.Properties{{Name: "color", Value: edm.String(strings.Repeat("rgb"[i%3:i%3+1], 64))}}
	})
	if c := h.columns[0]; c.encoding != encodingDict || len(h.HeapUnits) != 0 {
		t.Errorf("encoding %d, %d heap units, want %d and none", c.encoding, len(h.HeapUnits), encodingDict)
	}
}
