package bench

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Fold computes a checksum over every property of entities. The checksum depends on
// the order of the properties within an entity, and not on the order of the entities.
// It is cheap, so that its cost does not hide that of a store.
type Fold struct {
	sum  uint64
	rows int64
	h    uint64

	// Memory of Columns.
	hashes, words []uint64
	texts         [][]byte
}

// Sum returns the checksum of all rows.
func (f *Fold) Sum() uint64 { return f.sum }

// Rows returns the number of rows.
func (f *Fold) Rows() int64 { return f.rows }

// Add adds the rows of another Fold.
func (f *Fold) Add(g *Fold) {
	f.sum += g.sum
	f.rows += g.rows
}

// Row folds a row.
func (f *Fold) Row(row edm.Row) {
	for i := range row.Len() {
		_, v := row.At(i)
		switch t := v.Type(); t {
		case edm.TypeString, edm.TypeBinary, edm.TypeGuid:
			f.Bytes(t, v.Bytes())
		default:
			f.Word(t, v.Word())
		}
	}
	f.End()
}

const foldStep = 7

// Word folds a property of a type whose values fit in one word.
func (f *Fold) Word(t edm.Type, w uint64) { f.h = foldWord(f.h, t, w) }

func foldWord(h uint64, t edm.Type, w uint64) uint64 {
	return bits.RotateLeft64(h+uint64(t), foldStep) ^ w
}

// Bytes folds a property of type String, Binary or Guid.
func (f *Fold) Bytes(t edm.Type, b []byte) { f.h = foldBytes(f.h, t, b) }

func foldBytes(h uint64, t edm.Type, b []byte) uint64 {
	h = bits.RotateLeft64(h+uint64(t), foldStep) ^ uint64(len(b))
	// The last bytes are one word, which may have bytes twice or some of the word before: a loop
	// over them would cost more than the rest, because the processor does not predict its end.
	n := len(b)
	var last uint64
	switch {
	case n >= 8:
		for i := 0; i < n-8; i += 8 {
			h = bits.RotateLeft64(h, foldStep) ^ binary.LittleEndian.Uint64(b[i:])
		}
		last = binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		last = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		last = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return bits.RotateLeft64(h, foldStep) ^ last
}

// Columns folds rows that are columns, as Row folds each of them.
func (f *Fold) Columns(rows store.Columns) (err error) {
	n := rows.Len()
	f.hashes = slices.Grow(f.hashes[:0], n)[:n]
	clear(f.hashes)
	for i := range rows.Properties() {
		switch _, t := rows.Property(i); t {
		case edm.TypeString, edm.TypeBinary, edm.TypeGuid:
			if f.texts, err = rows.AppendBytes(f.texts[:0], i); err != nil {
				return err
			}
			for row, b := range f.texts {
				f.hashes[row] = foldBytes(f.hashes[row], t, b)
			}
		default:
			f.words = rows.AppendWords(f.words[:0], i)
			for row, w := range f.words {
				f.hashes[row] = foldWord(f.hashes[row], t, w)
			}
		}
	}
	for _, h := range f.hashes {
		f.h = h
		f.End()
	}
	return nil
}

// End ends a row.
func (f *Fold) End() {
	const odd = 0x9e3779b97f4a7c15
	f.sum += (f.h ^ f.h>>29) * odd
	f.rows++
	f.h = 0
}
