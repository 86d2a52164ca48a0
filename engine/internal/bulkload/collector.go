package bulkload

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// collector checks and encodes entities.
type collector struct {
	ctx    context.Context
	o      *Options
	memory *memory
	parts  chan<- *part

	n        int64 // entities
	part     *part
	partRows int                     // about the rows of a part, from the last one
	shapes   map[*codec.Shape]uint32 // of the part
	finder   codec.ShapeFinder

	lastShape *codec.Shape
	lastID    uint32

	// streaming says that parts of the piece have gone to the builder.
	streaming bool
	rows      int   // of the piece
	bytes     int64 // of the piece
	held      int64 // memory of the part beside its chunks

	key       []byte // the key of the entity, with the Partition in [:partLen]
	partition string
	partLen   int
	last      []byte // the key before
	props     edm.Properties
}

// minSorted is how many bytes of a piece must be in order before it is streamed. A shorter
// piece makes too many installs of a sequence that is only partly in order.
const minSorted = 4 << 20

func (c *collector) collect(entities iter.Seq2[edm.Entity, error]) (err error) {
	defer func() {
		if c.part != nil { // after an error or a panic
			c.memory.put(c.part.chunks)
		}
	}()
	c.finder.Reset(c.o.Shapes)
	for e, seqErr := range entities {
		switch {
		case seqErr != nil:
			err = &SequenceError{seqErr}
		case c.ctx.Err() != nil:
			err = c.ctx.Err()
		default:
			err = c.add(&e)
		}
		if err != nil {
			return err
		}
	}
	if c.part == nil && !c.streaming {
		return nil
	}
	return c.send(true)
}

// add checks and encodes an entity.
func (c *collector) add(e *edm.Entity) error {
	shape, err := c.check(e)
	if err != nil || shape.Len() > edm.MaxProperties { // the offsets of a shape hold no more
		return c.refusal(e)
	}
	props, shape := c.o.Shapes.Sorted(&c.props, e.Properties, shape)
	if c.n == 0 || e.Key.Partition != c.partition {
		c.key = codec.AppendPartition(c.key[:0], c.o.ID, e.Key.Partition)
		c.partition, c.partLen = e.Key.Partition, len(c.key)
	}
	c.key = codec.AppendRow(c.key[:c.partLen], e.Key.Row)
	if (c.part != nil || c.streaming) && bytes.Compare(c.key, c.last) < 0 {
		if c.streaming {
			if err := c.send(true); err != nil {
				return err
			}
		} else {
			c.part.unsort()
		}
	}
	if c.part == nil {
		c.part = &part{sorted: true, rows: make([]row, 0, c.partRows)}
		clear(c.shapes)
		c.lastShape = nil
	}
	if err := c.encode(e, shape, props); err != nil {
		return err
	}
	c.n++
	c.last = append(c.last[:0], c.key...)
	return c.cut()
}

// encode appends the row to the current chunk, or to the next one.
func (c *collector) encode(e *edm.Entity, shape *codec.Shape, props edm.Properties) error {
	p := c.part
	if p.full() {
		next, err := c.memory.take(c.ctx)
		if err != nil {
			return err
		}
		p.chunks = append(p.chunks, next)
	}
	at := len(p.chunks) - 1
	from := len(p.chunks[at].bytes)
	dst := codec.AppendPut(p.chunks[at].bytes, c.key, shape, props)
	size := len(dst) - from
	// As in Apply: only an entity near the limit needs the exact sum.
	if 2*size+shape.Len()*(2*edm.MaxNameUnits+16) > edm.MaxEntityBytes {
		if edm.CheckTotals(e.Key, props) != nil {
			return c.refusal(e)
		}
	}
	if from > 0 && cap(dst) > cap(p.chunks[at].bytes) { // it does not fit
		next, err := c.memory.take(c.ctx)
		if err != nil {
			return err
		}
		p.chunks = append(p.chunks, next)
		dst, at, from = append(next.bytes, dst[from:]...), at+1, 0
	}
	p.chunks[at].bytes = dst
	r := row{chunk: uint32(at), off: uint32(from), shape: c.shapeID(shape)}
	if !p.sorted {
		r.prefix = p.prefix(c.key)
	}
	p.rows = append(p.rows, r)
	c.held += rowBytes
	c.rows++
	c.bytes += int64(size)
	return nil
}

// shapeID returns the index of the shape in the part.
func (c *collector) shapeID(shape *codec.Shape) uint32 {
	if shape == c.lastShape {
		return c.lastID
	}
	id, ok := c.shapes[shape]
	if !ok {
		id = uint32(len(c.part.shapes))
		c.part.shapes = append(c.part.shapes, shape)
		c.shapes[shape] = id
		c.held += 2 * int64(shape.MemBytes()) // in the order of the entity, and sorted
	}
	c.lastShape, c.lastID = shape, id
	return id
}

// full reports whether the next entity begins a chunk.
func (p *part) full() bool {
	n := len(p.chunks)
	return n == 0 || cap(p.chunks[n-1].bytes)-len(p.chunks[n-1].bytes) < chunkTail
}

// check returns the shape of an entity, or an error.
func (c *collector) check(e *edm.Entity) (*codec.Shape, error) {
	key := e.Key
	if c.n > 0 && key.Partition == c.partition {
		key.Partition = "" // it was checked
	}
	if err := edm.CheckKey(key); err != nil {
		return nil, err
	}
	if s := c.finder.Find(e.Properties); s != nil {
		if _, ok := s.CheckValues(e.Properties); ok {
			return s, nil
		}
	}
	if err := edm.CheckProperties(e.Properties); err != nil {
		return nil, err
	}
	return c.o.Shapes.Of(e.Properties), nil
}

// refusal returns the error with which Apply refuses an entity.
func (c *collector) refusal(e *edm.Entity) error {
	err := store.CheckBatch(c.o.Table, []store.Op{store.InsertOrReplace(*e)}, nil)
	if err == nil {
		err = &store.OpError{Executed: true, Err: edm.CheckTotals(e.Key, e.Properties)}
	}
	var op *store.OpError
	if errors.As(err, &op) {
		op.Index = int(c.n)
	}
	return err
}

// cut sends what is collected if it is enough.
func (c *collector) cut() error {
	p := c.part
	switch {
	case c.bytes >= c.o.InstallBytes || len(p.chunks) > c.memory.perInstall,
		!p.sorted && c.bytes+c.held >= c.o.InstallBytes+c.o.InstallBytes/16:
		return c.send(true)
	case !p.sorted:
		return nil
	case c.streaming && (p.full() || len(p.chunks) > 1 || c.held >= minSorted),
		!c.streaming && (c.bytes >= min(minSorted, c.o.InstallBytes/4) || c.held >= c.o.InstallBytes/2):
		c.streaming = true
		return c.send(false)
	}
	return nil
}

// send hands over what is collected. end ends the piece.
func (c *collector) send(end bool) error {
	p := c.part
	if p == nil {
		p = &part{sorted: true}
	}
	p.end, p.entities = end, c.n
	p.rowsHint, p.bytesHint = c.rows, c.bytes
	if !end {
		p.rowsHint, p.bytesHint = int(c.o.InstallBytes/max(1, c.bytes/int64(c.rows))), c.o.InstallBytes
	}
	select {
	case c.parts <- p:
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	c.part, c.partRows, c.held = nil, len(p.rows)+len(p.rows)/8, 0
	if end {
		c.streaming, c.rows, c.bytes = false, 0, 0
	}
	return nil
}
