package transfer

import (
	"fmt"
	"io"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// Format is how a file holds entities.
type Format uint8

// The formats.
const (
	CSV   Format = iota + 1 // cells, with typed columns
	JSONL                   // one entity of the service's JSON a line
)

// ReadOptions describe a file of entities.
type ReadOptions struct {
	Name   string // of the file, for errors
	Format Format
	// PartitionKey and RowKey name the columns, or members, that are the keys.
	// The default are these names themselves.
	PartitionKey, RowKey string
	Delimiter            byte // between the cells of CSV; the default is a comma
	// Header are the columns of a CSV file that begins with data. The default is
	// the file's first record.
	Header []string
}

// Record is an entity of a file and the lines it stands on, from 1.
type Record struct {
	Entity      edm.Entity
	First, Last int64
}

// source reads the next record. It fails with io.EOF, with an error that is
// edm.ErrInvalid and the fault of the record, whose lines are then set, or with
// one that ends the file.
type source interface {
	next() (Record, error)
}

// Reader reads the entities of a file. It is used by one goroutine, but for
// Bytes.
type Reader struct {
	o     ReadOptions
	in    *input
	src   source
	begun bool
	err   error
}

// NewReader returns a Reader of r, of which it reads nothing yet.
func NewReader(r io.Reader, o ReadOptions) *Reader {
	if o.PartitionKey == "" {
		o.PartitionKey = edm.PartitionKeyName
	}
	if o.RowKey == "" {
		o.RowKey = edm.RowKeyName
	}
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	return &Reader{o: o, in: newInput(r)}
}

// Bytes returns how many bytes have been read. It may be called concurrently.
func (r *Reader) Bytes() int64 { return r.in.read.Load() }

// Next returns the next entity, which keeps every rule of the data model. An
// error that is a *LineError is the fault of that record alone: the next call
// goes on behind it. io.EOF is the end, and any other error lasts.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	if !r.begun {
		r.begun = true
		if err := r.begin(); err != nil {
			return Record{}, r.lasting(err)
		}
	}
	rec, err := r.src.next()
	if err == nil {
		err = edm.CheckEntity(&rec.Entity)
	}
	switch {
	case err == nil:
		return rec, nil
	case inRow(err):
		return rec, &LineError{r.o.Name, rec.First, err}
	}
	return Record{}, r.lasting(err)
}

func (r *Reader) lasting(err error) error {
	if err != io.EOF {
		err = fmt.Errorf("%s: %w", r.o.Name, err)
	}
	r.err = err
	return err
}

func (r *Reader) begin() error {
	if err := r.in.begin(); err != nil {
		return err
	}
	if r.o.Format == JSONL {
		r.src = &jsonSource{in: r.in, keys: odata.ParseOptions{PartitionKey: r.o.PartitionKey, RowKey: r.o.RowKey}}
		return nil
	}
	src, err := newCSVSource(r.in, &r.o)
	r.src = src
	return err
}

// jsonSource reads one entity a line.
type jsonSource struct {
	in   *input
	keys odata.ParseOptions
}

func (s *jsonSource) next() (Record, error) {
	for {
		rec := Record{First: s.in.line, Last: s.in.line}
		n, err := s.in.extend(0)
		if err == errTooLong {
			if dropErr := s.in.drop(); dropErr != nil {
				err = dropErr
			}
		}
		if err != nil {
			return rec, err
		}
		if n == 0 {
			return rec, io.EOF
		}
		line := trimEnd(s.in.view(n))
		s.in.take(n, 1)
		if !blank(line) {
			rec.Entity, err = odata.ParseEntity(line, s.keys)
			return rec, err
		}
	}
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}
