package rowgroup

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// dictBuilder collects the distinct values of a column until there are too many.
type dictBuilder struct {
	stopped bool
	codes   []uint64
	total   int // bytes of all values, repeated ones included
	ends    []int
	bytes   []byte
	table   [2 * maxDictEntries]uint16 // by hash, code + 1
}

// dictTrialRows limits how many rows of a column of random values are tried.
const dictTrialRows = 16

// reset removes all values.
func (d *dictBuilder) reset() {
	d.stopped, d.total = false, 0
	d.codes, d.ends, d.bytes = d.codes[:0], d.ends[:0], d.bytes[:0]
	clear(d.table[:])
}

func (d *dictBuilder) value(code int) []byte {
	from := 0
	if code > 0 {
		from = d.ends[code-1]
	}
	return d.bytes[from:d.ends[code]]
}

// add appends a value, unless d.stopped.
func (d *dictBuilder) add(b []byte) {
	d.total += len(b)
	i := xxhash.Sum64(b) % uint64(len(d.table))
	for ; d.table[i] != 0; i = (i + 1) % uint64(len(d.table)) {
		if code := int(d.table[i] - 1); bytes.Equal(d.value(code), b) {
			d.codes = append(d.codes, uint64(code))
			return
		}
	}
	n := len(d.ends)
	if n == maxDictEntries || n >= dictTrialRows*3/4 && 2*n > len(d.codes) || len(d.bytes)+len(b) > 1<<15 {
		d.stopped = true
		return
	}
	d.table[i] = uint16(n + 1)
	d.bytes = append(d.bytes, b...)
	d.ends = append(d.ends, len(d.bytes))
	d.codes = append(d.codes, uint64(n))
}

// pays reports whether the dictionary, with codes that follow a header, is clearly
// smaller than the values of all rows.
func (d *dictBuilder) pays(rows, header int) bool {
	if d.stopped || len(d.ends) == 0 {
		return false
	}
	width := (bits.Len(uint(len(d.ends)-1)) + 7) / 8
	return 3+2*len(d.ends)+len(d.bytes)+header+rows*width < (d.total+rows)*3/4
}

// appendTo appends the dictionary: u8 entries - 1, u16 length of all, entries times
// u16 ends, the entries' bytes.
func (d *dictBuilder) appendTo(dst []byte) []byte {
	dst = append(dst, byte(len(d.ends)-1))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(d.bytes)))
	for _, end := range d.ends {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
	}
	return append(dst, d.bytes...)
}

func (c *column) decodeDict(cur *cursor, rows int) bool {
	n, size := int(cur.u8())+1, cur.u16()
	c.dict = uint32(cur.off)
	ends := cur.bytes(2 * n)
	c.bytes = uint32(cur.off)
	cur.bytes(size)
	c.a = cur.vector(rows)
	if cur.bad {
		return false
	}
	data := cur.data()
	last := 0
	for i := range n {
		end := le16(ends, i)
		if end < last || end > size {
			return false
		}
		last = end
	}
	if last != size {
		return false
	}
	for i := range rows {
		if c.a.at(data, i) >= uint64(n) {
			return false
		}
	}
	return true
}

// entry returns an entry of the dictionary.
func (c *column) entry(data []byte, code int) []byte {
	ends, from := data[c.dict:], 0
	if code > 0 {
		from = le16(ends, code-1)
	}
	texts, to := data[c.bytes:], le16(ends, code)
	return texts[from:to:to]
}
