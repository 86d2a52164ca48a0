// Package bulkload writes a sequence of entities to sstables, without the log.
//
// It cuts the sequence into pieces. The goroutine of the caller, the collector, checks and
// encodes entities. A second one, the builder, writes them to the files of the piece and
// installs these. If the first entities of a piece are in order, the builder gets it in
// parts while it is collected; the piece ends where the order does. Otherwise the builder
// gets a whole piece and sorts it. Of entities with one key in a piece the last one counts.
package bulkload

import (
	"context"
	"iter"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm"
)

// Options say what to load, and how to install it. The functions are called by one
// goroutine at a time.
type Options struct {
	// Table is the name of the table and ID its id.
	Table string
	ID    uint32
	// InstallBytes is the size of a piece of encoded entities, or if they are not sorted about that
	// of the memory for a piece. Two pieces are in memory at the same time.
	InstallBytes int64
	Shapes       *codec.ShapeCache
	// Begin returns the files of a piece of about the given number of rows and bytes, and
	// the Timestamp to write in them.
	Begin func(ctx context.Context, rows int, bytes int64) (*lsm.Load, edm.Ticks, error)
	// Check returns the error for which the load must end, such as a dropped table.
	Check func() error
	// Install installs the files of a piece, which are finished, and returns the Timestamp
	// of their rows. After an error the caller of Install aborts them.
	Install func(ctx context.Context, files *lsm.Load) (edm.Ticks, error)
	// Installed is called after each install.
	Installed func(Result)
}

// Result is how far a load got.
type Result struct {
	Entities int64 // of the sequence, from its beginning, that are installed
	Installs int
	// Timestamp is that of the entities of the last install.
	Timestamp edm.Ticks
}

// SequenceError is an error of the sequence, which says nothing about the database.
type SequenceError struct{ Err error }

// Error returns the text of Err.
func (e *SequenceError) Error() string { return e.Err.Error() }

// Load loads the entities and returns how many of them are installed, also with an error.
// The error is a *SequenceError, that of an entity (a *store.OpError whose Index is that of
// the entity in the sequence), of a function of o or of ctx.
func Load(ctx context.Context, o Options, entities iter.Seq2[edm.Entity, error]) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newMemory(o.InstallBytes)
	defer m.free()
	b := &builder{ctx: ctx, cancel: cancel, o: &o, memory: m, parts: make(chan *part, partsAhead), done: make(chan struct{})}
	go b.run()
	c := &collector{ctx: ctx, o: &o, memory: m, parts: b.parts, shapes: make(map[*codec.Shape]uint32)}
	// The builder ends also if the sequence panics.
	err := func() error {
		defer b.wait()
		return c.collect(entities)
	}()
	if b.err != nil {
		err = b.err // the collector may have noticed it by its ctx
	}
	return b.result, err
}

// partsAhead is how many parts wait for the builder.
const partsAhead = 8

// part is consecutive entities of a piece.
type part struct {
	chunks []*chunk
	rows   []row
	shapes []*codec.Shape
	sorted bool
	// If the rows are not sorted, all keys have common bytes in common, and the first
	// unprefixed rows have no prefix yet.
	common, unprefixed int
	// end says that the piece ends here, with this number of entities since the beginning
	// of the sequence.
	end      bool
	entities int64
	// rowsHint and bytesHint are an estimate for the whole piece.
	rowsHint  int
	bytesHint int64
}

// row is an encoded entity. It has no pointers: the collector of garbage would look at all
// of them, which costs a tenth of a load.
type row struct {
	prefix     [2]uint64 // of its key, for sorting
	chunk, off uint32
	shape      uint32 // index in the shapes of the part
}

const rowBytes = 32 // memory of a row

// entry returns the encoding of a row and of the rows after it in its chunk.
func (p *part) entry(r *row) []byte { return p.chunks[r.chunk].bytes[r.off:] }
