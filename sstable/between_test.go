package sstable

import (
	"fmt"
	"math"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestBetween has keys of digits in two tables, which are far from even between the first and the last one.
func TestBetween(t *testing.T) {
	key := func(n int) []byte { return codec.AppendKey(nil, uint32(1+n/2000), fmt.Sprintf("%05d", n), "") }
	var entries []entry
	for n := range 4000 {
		e := entry{user: key(n), key: codec.AppendTrailer(key(n), 1, codec.KindPut), props: edm.Properties{{Name: "N", Value: edm.Int64(int64(n))}}}
		entries = append(entries, e)
	}
	o := writerOptions()
	o.GroupBytes = 1 << 10
	f, _ := write(t, o, entries)
	r := open(t, f, nil)
	for _, c := range []struct {
		lower, upper []byte
		want         float64
	}{
		{nil, nil, 1},
		{key(1000), nil, 0.75},
		{nil, key(1000), 0.25},
		{key(1900), key(2100), 0.05},
		{key(1999), codec.AppendTable(nil, 2), 0},
		{codec.AppendTable(nil, 2), nil, 0.5},
		{key(3999), nil, 0},
	} {
		if got := r.Between(key(0), key(3999), c.lower, c.upper); math.Abs(got-c.want) > 0.03 || c.want == 1 && got != 1 {
			t.Errorf("%q to %q: %.3f of the bytes, want %.2f", c.lower, c.upper, got, c.want)
		}
	}
	if got := r.Between(key(1000), key(2000), nil, key(1500)); math.Abs(got-0.125) > 0.03 {
		t.Errorf("from row 1000 to row 1500: %.3f of the bytes, want 0.125", got)
	}
	if rows, share := r.Within(key(1000), key(2000)); math.Abs(float64(rows)-1000) > 100 || math.Abs(share-0.25) > 0.03 {
		t.Errorf("from row 1000 to row 2000: %d rows, %.3f of the bytes, want 1000 and 0.25", rows, share)
	}
	if rows, share := r.Within(key(0), key(3999)); rows != 4000 || share != 1 {
		t.Errorf("all: %d rows, %.3f of the bytes", rows, share)
	}
	f, _ = write(t, o, nil)
	empty := open(t, f, nil)
	if rows, share := empty.Within(key(0), key(1)); rows != 0 || share != 0 || empty.Between(key(0), key(1), nil, nil) != 0 {
		t.Errorf("of an empty file: %d rows, %.3f and %.3f of the bytes", rows, share, empty.Between(key(0), key(1), nil, nil))
	}
}
