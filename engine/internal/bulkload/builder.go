package bulkload

import (
	"bytes"
	"context"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm"
)

// builder writes parts to files and installs them.
type builder struct {
	ctx    context.Context
	cancel context.CancelFunc
	o      *Options
	memory *memory
	parts  chan *part
	done   chan struct{}
	result Result
	err    error

	files *lsm.Load // of the current piece, nil between pieces
	stamp edm.Ticks
	// held is the last row, which is written when the next row has another key.
	held      []byte
	heldShape *codec.Shape
	buf       []byte
	row       codec.Row
	read      byte // of readAhead, which the compiler would remove otherwise
}

// run builds parts until the channel is closed. A piece without its end is discarded.
func (b *builder) run() {
	defer close(b.done)
	for p := range b.parts {
		if b.err == nil {
			if b.err = b.build(p); b.err != nil {
				b.cancel()
			}
		}
		b.memory.put(p.chunks)
	}
	if b.files != nil {
		b.files.Abort()
	}
}

func (b *builder) wait() {
	close(b.parts)
	<-b.done
}

func (b *builder) build(p *part) error {
	if b.ctx.Err() != nil {
		return b.ctx.Err()
	}
	if err := b.o.Check(); err != nil {
		return err
	}
	if b.files == nil {
		var err error
		if b.files, b.stamp, err = b.o.Begin(b.ctx, p.rowsHint, p.bytesHint); err != nil {
			return err
		}
	}
	if !p.sorted {
		p.sort()
	}
	for i := range p.rows {
		if i%rowsAhead == 0 {
			if b.ctx.Err() != nil {
				return b.ctx.Err()
			}
			if !p.sorted {
				b.readAhead(p, p.rows[i:min(i+rowsAhead, len(p.rows))])
			}
		}
		r := &p.rows[i]
		entry := p.entry(r)
		if b.held != nil && !bytes.Equal(codec.EntryKey(b.held), codec.EntryKey(entry)) {
			if err := b.write(); err != nil {
				return err
			}
		}
		b.held, b.heldShape = entry, p.shapes[r.shape]
	}
	if p.end {
		return b.install(p)
	}
	// The memory of the part goes back.
	n := codec.EntryLen(b.held)
	b.buf = append(b.buf[:0], b.held[:n]...)
	b.held = b.buf
	return nil
}

// rowsAhead is the number of rows whose entries readAhead touches.
const rowsAhead = 64

// readAhead touches the entries of rows in random order: first the beginning of each, which
// has its length. A random load needs a tenth less CPU (bench/peers,
// load/by=bulk/order=random).
func (b *builder) readAhead(p *part, rows []row) {
	for i := range rows {
		b.read |= p.entry(&rows[i])[0]
	}
	for i := range rows {
		b.read |= codec.TouchEntry(p.entry(&rows[i]))
	}
}

// write writes the row that is held.
func (b *builder) write() error {
	codec.PatchEntry(b.held, 0, b.stamp)
	b.row.ResetEntry(b.held, b.heldShape)
	return b.files.Add(codec.EntryKey(b.held), &b.row)
}

// install ends the piece with the part p.
func (b *builder) install(p *part) error {
	if b.held != nil {
		if err := b.write(); err != nil {
			return err
		}
		b.held = nil
	}
	if err := b.files.Finish(); err != nil {
		return err
	}
	stamp, err := b.o.Install(b.ctx, b.files)
	if err != nil {
		return err
	}
	b.files = nil
	b.result = Result{Entities: p.entities, Installs: b.result.Installs + 1, Timestamp: stamp}
	b.o.Installed(b.result)
	return nil
}
