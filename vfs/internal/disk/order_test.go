package disk

import (
	"math/rand/v2"
	"testing"
)

// TestReadOrder follows scans of several parts of a file, among reads at random.
func TestReadOrder(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 1))
	random := func() int64 { return 1<<40 + r.Int64N(1<<40) } // far from the scans
	for _, c := range []struct {
		name        string
		scans, gets int   // reads at random after each read of all scans
		skip        int64 // bytes between two reads of a scan
		want        bool  // whether scans are in order
	}{
		{"one scan", 1, 0, 0, true},
		{"one scan that skips", 1, 0, streamGap, true},
		{"one scan that skips more", 1, 0, streamGap + 1, false},
		{"one scan among gets", 1, streams - 1, 0, true},
		{"one scan among many gets", 1, streams, 0, false},
		{"as many scans as streams", streams, 0, 0, true},
		{"more scans than streams", streams + 1, 0, 0, false},
	} {
		var o readOrder
		was := false
		read := func(off, n int64) bool {
			inOrder, changed := o.read(off, n)
			if changed != (inOrder != was) {
				t.Errorf("%s: in order %t after %t: changed %t", c.name, inOrder, was, changed)
			}
			was = inOrder
			return inOrder
		}
		const n = 10 << 10
		for i := range int64(100) {
			for scan := range c.scans {
				got := read(int64(scan)<<32+i*(n+c.skip), n)
				if want := c.want && i >= streamReads-1; got != want {
					t.Fatalf("%s: read %d is in order: %t, want %t", c.name, i, got, want)
				}
			}
			for range c.gets {
				if read(random(), n) {
					t.Fatalf("%s: a read at random is in order (seed %d)", c.name, seed)
				}
			}
		}
	}
	// A read that meets another one counts nothing.
	var o readOrder
	o.mu.Lock()
	if inOrder, changed := o.read(0, 1); inOrder || changed || o.n != 0 {
		t.Error("a read beside another one was counted")
	}
}
