package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// TestGenerate checks that the entities are legal, have ascending keys and each of
// the eight types, and depend on the seed alone.
func TestGenerate(t *testing.T) {
	text := func(seed uint64) []byte {
		t.Helper()
		var b bytes.Buffer
		if err := generate(&b, 250, 100, seed); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := text(1)
	if !bytes.Equal(first, text(1)) {
		t.Error("the same seed gives other entities")
	}
	if bytes.Equal(first, text(2)) {
		t.Error("another seed gives the same entities")
	}
	r := transfer.NewReader(bytes.NewReader(first), transfer.ReadOptions{Format: transfer.JSONL})
	types := map[edm.Type]int{}
	last, n := edm.Key{}, 0
	for ; ; n++ {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if key := rec.Entity.Key; key.Compare(last) <= 0 {
			t.Errorf("%v follows %v", key, last)
		}
		last = rec.Entity.Key
		for _, p := range rec.Entity.Properties {
			types[p.Value.Type()]++
		}
	}
	if n != 250 || len(types) != 8 {
		t.Errorf("%d entities with %d types, want 250 with 8: %v", n, len(types), types)
	}
}
