package recovery

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/wal"
)

// entries inserts the entries of a segment's records into its memtable.
type entries struct {
	name      string
	table     *memtable.Table
	highWater edm.Ticks
}

func (e *entries) apply(rec wal.RecordView) error {
	seq := rec.FirstSeq
	rest := rec.Payload
	for len(rest) > 0 {
		off := rec.PayloadOff + int64(len(rec.Payload)-len(rest))
		entry, n, err := codec.DecodeEntry(rest)
		if err != nil {
			return e.damage(off, err)
		}
		if err := e.check(uint32(off), entry); err != nil {
			return e.damage(off, err)
		}
		if entry.Kind != codec.KindShape {
			e.table.Apply(uint32(off), seq, 0)
			e.highWater = max(e.highWater, entry.Timestamp)
			seq++
		}
		rest = rest[n:]
	}
	if seq != rec.FirstSeq+uint64(rec.Count) {
		return corrupt.Newf(e.name, rec.PayloadOff, "record of %d entries holds %d", rec.Count, seq-rec.FirstSeq)
	}
	return nil
}

// damage returns the error for the entry at off, without the offset within the
// entry that package codec adds.
func (e *entries) damage(off int64, err error) error {
	what := err.Error()
	var within *corrupt.Error
	if errors.As(err, &within) {
		what = within.What
	}
	return corrupt.Newf(e.name, off, "entry: %s", what)
}

// check checks everything about the entry at off on which reading it relies.
func (e *entries) check(off uint32, entry codec.Entry) error {
	switch entry.Kind {
	case codec.KindShape:
		shape, rest, err := codec.DecodeShape(entry.Values)
		if err != nil {
			return err
		}
		if len(rest) > 0 || int(entry.Shape) != e.table.Shapes()+1 {
			return fmt.Errorf("definition of shape %d after %d shapes, with %d bytes after it", entry.Shape, e.table.Shapes(), len(rest))
		}
		e.table.AddShape(entry.Shape, off, shape)
		return nil
	case codec.KindPut:
		shape := e.table.Shape(entry.Shape)
		if shape == nil {
			return fmt.Errorf("shape %d of %d", entry.Shape, e.table.Shapes())
		}
		if err := codec.CheckValues(shape, entry.Wide, entry.Values); err != nil {
			return err
		}
		if err := checkSizes(entry, shape); err != nil {
			return err
		}
	case codec.KindDelete:
	}
	return codec.CheckKey(entry.Key)
}

// Limits of sstables for a value, and for all values of a row in the log's encoding.
// Entities are far below both.
const (
	maxValueBytes  = 1 << 20
	maxValuesBytes = 2<<20 + 4<<10
)

// checkSizes refuses a row that a flush could not write.
func checkSizes(entry codec.Entry, shape *codec.Shape) error {
	if len(entry.Values) <= maxValueBytes {
		return nil
	}
	if len(entry.Values) > maxValuesBytes {
		return fmt.Errorf("values of %d bytes, at most %d can be", len(entry.Values), maxValuesBytes)
	}
	var row codec.Row
	row.Reset(entry.Key, entry.Timestamp, shape, entry.Wide, entry.Values)
	for i := range row.Len() {
		if name, v := row.At(i); len(v.Bytes()) > maxValueBytes {
			return fmt.Errorf("property %q of %d bytes, at most %d can be", name, len(v.Bytes()), maxValueBytes)
		}
	}
	return nil
}
