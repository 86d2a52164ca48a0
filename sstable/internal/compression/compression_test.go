package compression

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRoundTrip compresses and decompresses texts of many lengths.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for _, n := range []int{1, 2, 15, 16, 100, 4 << 10, 12 << 10, 64 << 10, 1 << 20} {
		for name, c := range map[string]struct {
			raw         []byte
			fast, small float64 // the greatest share of the length, from 4 KiB on
		}{
			"random":  {random(n), 1, 1},
			"hex":     {fmt.Appendf(nil, "%x", random(n/2+1))[:n], 1, 0.55},
			"repeats": {[]byte(strings.Repeat("the same words ", n/15+1)[:n]), 0.1, 0.05},
			"zeros":   {make([]byte, n), 0.1, 0.05},
		} {
			for m, most := range map[Method]float64{Fast: c.fast, Small: c.small, None: 1} {
				out := Append([]byte("before"), c.raw, m)
				stored, ok := bytes.CutPrefix(out, []byte("before"))
				if !ok || len(stored) > len(c.raw) {
					t.Fatalf("%s, %d bytes, method %d: %d bytes, after what was there: %t", name, n, m, len(stored), ok)
				}
				if n >= 4<<10 && float64(len(stored)) > most*float64(n) {
					t.Errorf("%s, %d bytes, method %d: %d bytes, want at most %.2f", name, n, m, len(stored), most)
				}
				raw := make([]byte, n)
				if len(stored) == n {
					copy(raw, stored)
				} else if err := Decode(raw, stored, m); err != nil {
					t.Fatalf("%s, %d bytes, method %d: %v", name, n, m, err)
				}
				if !bytes.Equal(raw, c.raw) {
					t.Fatalf("%s, %d bytes, method %d: other bytes", name, n, m)
				}
			}
		}
	}
}

// TestDecodeLength decompresses into memory of another length.
func TestDecodeLength(t *testing.T) {
	raw := []byte(strings.Repeat("the same words ", 500))
	for _, m := range []Method{Fast, Small} {
		stored := Append(nil, raw, m)
		for _, n := range []int{0, 1, len(raw) - 1, len(raw) + 1, 2 * len(raw)} {
			if err := Decode(make([]byte, n), stored, m); err == nil {
				t.Errorf("method %d: %d bytes were decompressed to %d", m, len(raw), n)
			}
		}
		if err := Decode(make([]byte, len(raw)), append(bytes.Clone(stored), stored...), m); err == nil {
			t.Errorf("method %d: two frames were decompressed as one", m)
		}
	}
}

// FuzzDecode decompresses any bytes: what is behind the memory for them must not change.
func FuzzDecode(f *testing.F) {
	for _, m := range []Method{Fast, Small} {
		for _, n := range []int{20, 5000} {
			f.Add(Append(nil, []byte(strings.Repeat("words ", n)), m), uint16(6*n), m == Small)
		}
	}
	f.Fuzz(func(t *testing.T, stored []byte, n uint16, small bool) {
		m := Fast
		if small {
			m = Small
		}
		memory := bytes.Repeat([]byte{0xA5}, int(n)+64)
		raw := memory[:n]
		if err := Decode(raw, stored, m); err == nil {
			again := make([]byte, n)
			if err := Decode(again, stored, m); err != nil || !bytes.Equal(raw, again) {
				t.Fatalf("decompressed again: %v", err)
			}
		}
		for i, b := range memory[n:] {
			if b != 0xA5 {
				t.Fatalf("byte %d behind the memory was changed", i)
			}
		}
	})
}
