package dictionary

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// TestBuilder builds dictionaries of columns with some distinct values, each
// several times, and reads them back.
func TestBuilder(t *testing.T) {
	var d Builder // reused, as by a writer
	for _, c := range []struct {
		name            string
		distinct, times int
		bytes           int // of each value, at least
		pays            bool
	}{
		{"nothing", 0, 0, 0, false},
		{"one value", 1, 100, 1, true},
		{"one empty value", 1, 100, 0, true},
		{"few", 10, 20, 12, true},
		{"few rows", 10, 2, 1, false},
		{"as many as codes exist", 256, 4, 8, true},
		{"one more", 257, 4, 8, false},
		{"all different", 300, 1, 8, false},
		{"as many bytes as allowed", 16, 20, 2048, true},
		{"more bytes", 17, 20, 2048, false},
	} {
		d.Reset()
		var values [][]byte
		for range c.times {
			for i := range c.distinct {
				v := fmt.Appendf(nil, "%d", i)
				if v = append(v, make([]byte, max(0, c.bytes-len(v)))...); c.bytes == 0 {
					v = nil
				}
				values = append(values, v)
			}
		}
		slices.SortStableFunc(values, bytes.Compare)
		for _, v := range values {
			if !d.Stopped() {
				d.Add(v)
			}
		}
		if pays := d.Pays(len(values), 9); pays != c.pays {
			t.Errorf("%s: pays %v, want %v", c.name, pays, c.pays)
			continue
		}
		if !c.pays {
			continue
		}
		list := readDict(t, d.AppendTo([]byte("+"))[1:])
		if len(list) != c.distinct || len(d.Codes()) != len(values) {
			t.Errorf("%s: %d entries and %d codes, want %d and %d", c.name, len(list), len(d.Codes()), c.distinct, len(values))
			continue
		}
		for i, code := range d.Codes() {
			if !bytes.Equal(list[code], values[i]) {
				t.Errorf("%s: value %d is %q, want %q", c.name, i, list[code], values[i])
			}
		}
	}
	d.Reset()
	d.Add([]byte("a value"))
	d.Stop()
	if d.Pays(1000, 9) {
		t.Error("there is a dictionary after Stop")
	}
}

// readDict returns the entries of a dictionary.
func readDict(t *testing.T, b []byte) (list [][]byte) {
	t.Helper()
	n, size := int(b[0])+1, int(binary.LittleEndian.Uint16(b[1:]))
	ends, texts := b[3:3+2*n], b[3+2*n:]
	if len(texts) != size {
		t.Fatalf("%d bytes of entries, the dictionary states %d", len(texts), size)
	}
	from := 0
	for i := range n {
		end := int(binary.LittleEndian.Uint16(ends[2*i:]))
		list = append(list, texts[from:end])
		from = end
	}
	return list
}
