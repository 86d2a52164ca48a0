package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// The column v of tr_entities and tr_long has the properties of an entity:
//
//	0  1  flags: bit 0 is set if the values have the wide form
//	1  n  shape, as codec.AppendShape encodes it
//	n  m  values, as codec.AppendValues encodes them
const flagWide = 1

// Shapes caches the shapes of properties that are written and of values that are read.
// It may be used concurrently.
type Shapes struct {
	written codec.ShapeCache
	last    atomic.Pointer[encodedShape] // the one read last, which mostly is the next one too

	mu sync.RWMutex
	// +checklocks:mu
	read map[string]*encodedShape
	// +checklocks:mu
	used int // estimated bytes of read
}

type encodedShape struct {
	text  string
	shape *codec.Shape
}

// maxShapeBytes limits the memory of shapes that were read.
const maxShapeBytes = 8 << 20

// AppendValue appends the column v of properties, which CheckBatch has accepted. sorted is for
// all operations but inserts: it stores the properties in the order of their names.
func (s *Shapes) AppendValue(dst []byte, props edm.Properties, sorted bool) []byte {
	shape := s.written.Of(props)
	if sorted {
		var buf edm.Properties
		props, shape = s.written.Sorted(&buf, props, shape)
	}
	at := len(dst)
	dst = codec.AppendShape(append(dst, 0), shape)
	dst, wide := codec.AppendValues(dst, shape, props)
	if wide {
		dst[at] = flagWide
	}
	return dst
}

// shapeLen returns the length of the encoded shape at the start of b, 0 if it is damaged.
func shapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	at := 2
	for range binary.LittleEndian.Uint16(b) {
		if len(b)-at < 3 {
			return 0
		}
		at += 3 + int(binary.LittleEndian.Uint16(b[at+1:]))
		if at > len(b) {
			return 0
		}
	}
	return at
}

// decodeShape returns the shape at the start of b and its length.
func (s *Shapes) decodeShape(b []byte) (*codec.Shape, int, error) {
	// The lengths in an encoded shape end it, so one that b begins with is that of b.
	if e := s.last.Load(); e != nil && len(b) >= len(e.text) && string(b[:len(e.text)]) == e.text {
		return e.shape, len(e.text), nil
	}
	n := shapeLen(b)
	s.mu.RLock()
	e := s.read[string(b[:n])]
	s.mu.RUnlock()
	if e == nil {
		shape, rest, err := codec.DecodeShape(b)
		if err != nil {
			return nil, 0, err
		}
		e = &encodedShape{text: string(b[:len(b)-len(rest)]), shape: shape}
		s.mu.Lock()
		size := len(e.text) + shape.MemBytes()
		if s.used += size; s.read == nil || s.used > maxShapeBytes {
			s.read, s.used = map[string]*encodedShape{}, size
		}
		s.read[e.text] = e
		s.mu.Unlock()
	}
	s.last.Store(e)
	return e.shape, len(e.text), nil
}

// UserKey appends the user key of package codec for the columns p and r.
func UserKey(dst, p, r []byte) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = append(append(dst, p...), endOfComponent)
	return append(append(dst, r...), endOfComponent)
}

const (
	endOfComponent = 1
	KeyOverhead    = 6 // bytes that UserKey adds to p and r
)

// Decode sets row to the entity with the columns p, r, ts and v. The row is valid as long as
// key, the user key of p and r, and v. The error, for damaged bytes, names the table of the database and the key.
func (s *Shapes) Decode(row *codec.Row, table string, key []byte, ts int64, v []byte) error {
	err := s.decodeValue(row, key, ts, v)
	if err == nil {
		return nil
	}
	what := err.Error()
	if damage, ok := err.(*corrupt.Error); ok { //nolint:errorlint // codec returns it unwrapped
		what = damage.What
	}
	return corrupt.Newf(table, 0, "%s: %s", KeyText(key), what)
}

func (s *Shapes) decodeValue(row *codec.Row, key []byte, ts int64, v []byte) error {
	if err := codec.CheckKey(key); err != nil {
		return err
	}
	if !edm.Ticks(ts).Valid() {
		return fmt.Errorf("a Timestamp of %d ticks", ts)
	}
	if len(v) < 1 || v[0]&^flagWide != 0 {
		return fmt.Errorf("%d bytes with unknown flags", len(v))
	}
	shape, n, err := s.decodeShape(v[1:])
	if err != nil {
		return err
	}
	wide, values := v[0]&flagWide != 0, v[1+n:]
	if err := codec.CheckValues(shape, wide, values); err != nil {
		return err
	}
	row.Reset(key, edm.Ticks(ts), shape, wide, values)
	return nil
}

// KeyText returns the columns p and r of a user key for an error.
func KeyText(key []byte) string {
	const most = 100
	p, r, _ := bytes.Cut(bytes.TrimSuffix(key[4:], []byte{endOfComponent}), []byte{endOfComponent})
	return fmt.Sprintf("p = %.*x, r = %.*x", most, p, most, r)
}
