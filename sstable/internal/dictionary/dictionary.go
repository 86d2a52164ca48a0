// Package dictionary builds the dictionary of a column: its distinct values, and the code
// of each row's value.
package dictionary

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// maxEntries is the most entries of a dictionary.
const maxEntries = 256 // part of the file format

// Builder collects the distinct values of a column until there are too many. It copies them, and is not
// safe for concurrent use.
type Builder struct {
	// Whole is set before the first Add if the Builder must not stop because the first values are
	// nearly all different.
	Whole bool

	stopped bool
	codes   []uint64
	total   int // bytes of all values, repeated ones included
	ends    []int
	bytes   []byte
	table   [2 * maxEntries]uint16 // by hash, code + 1
}

// trialRows limits how many rows of a column of random values are tried.
const trialRows = 16

// Reset removes all values.
func (d *Builder) Reset() {
	d.stopped, d.total = false, 0
	d.codes, d.ends, d.bytes = d.codes[:0], d.ends[:0], d.bytes[:0]
	clear(d.table[:])
}

func (d *Builder) value(code int) []byte {
	from := 0
	if code > 0 {
		from = d.ends[code-1]
	}
	return d.bytes[from:d.ends[code]]
}

// Add appends a value. Call it only if d is not Stopped.
func (d *Builder) Add(b []byte) {
	d.total += len(b)
	i := xxhash.Sum64(b) % uint64(len(d.table))
	for ; d.table[i] != 0; i = (i + 1) % uint64(len(d.table)) {
		if code := int(d.table[i] - 1); bytes.Equal(d.value(code), b) {
			d.codes = append(d.codes, uint64(code))
			return
		}
	}
	n := len(d.ends)
	if n == maxEntries || !d.Whole && n >= trialRows*3/4 && 2*n > len(d.codes) || len(d.bytes)+len(b) > 1<<15 {
		d.stopped = true
		return
	}
	d.table[i] = uint16(n + 1)
	d.bytes = append(d.bytes, b...)
	d.ends = append(d.ends, len(d.bytes))
	d.codes = append(d.codes, uint64(n))
}

// Pays reports whether the dictionary, with codes that follow a header, is clearly
// smaller than the values of all rows.
func (d *Builder) Pays(rows, header int) bool {
	if d.stopped || len(d.ends) == 0 {
		return false
	}
	width := (bits.Len(uint(len(d.ends)-1)) + 7) / 8
	return 3+2*len(d.ends)+len(d.bytes)+header+rows*width < (d.total+rows)*3/4
}

// AppendTo appends the dictionary: u8 entries - 1, u16 length of all, entries times
// u16 ends, the entries' bytes.
func (d *Builder) AppendTo(dst []byte) []byte {
	dst = append(dst, byte(len(d.ends)-1))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(d.bytes)))
	for _, end := range d.ends {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
	}
	return append(dst, d.bytes...)
}

// Entries returns the number of distinct values.
func (d *Builder) Entries() int { return len(d.ends) }

// Stop ends the collection: the column has no dictionary.
func (d *Builder) Stop() { d.stopped = true }

// Stopped reports whether the column has no dictionary.
func (d *Builder) Stopped() bool { return d.stopped }

// Codes returns the codes of the values that were added, valid until Reset.
func (d *Builder) Codes() []uint64 { return d.codes }
