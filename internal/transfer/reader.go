package transfer

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
)

// Format is the format of a file of entities.
type Format uint8

// The formats.
const (
	CSV     Format = iota + 1 // comma-separated values with typed columns
	JSONL                     // one entity per line in the service's JSON
	JSON                      // one array of entities in the service's JSON
	Parquet                   // rows of typed columns; see NewParquetReader
)

// ReadOptions describe a file of entities.
type ReadOptions struct {
	Name string // of the file, for error messages
	// Format is the format of the text. A file that begins with a bracket is an array in
	// JSONL too, and one that does not is JSONL in JSON too.
	Format Format
	// Compression is what the name of the file says. If the file has another one, that is
	// an error. The default is to look at the first bytes of the file.
	Compression Compression
	// PartitionKey and RowKey are the names of the columns or members that hold the
	// keys. The default are these names themselves.
	PartitionKey, RowKey string
	Delimiter            byte // separates CSV cells; the default is a comma
	// Header holds the columns of a CSV file without a header line. The default is the
	// first record of the file.
	Header []string
	// PageBytes limits the memory of the pages of a Parquet file, stored and decompressed, of
	// all columns together. The default is 512 MiB.
	PageBytes int64
}

// Record is an entity of a file with its first and last line, counted from 1. In a file
// without lines these are the number of the entity.
type Record struct {
	Entity      edm.Entity
	First, Last int64
}

// source reads records. Its error is io.EOF, an error for which isRowError is true, which
// concerns only the returned record, whose lines are set, or another error, which ends the
// file.
type source interface {
	next() (Record, error)
}

// Reader reads the entities of a file. Only Bytes is safe for concurrent use.
type Reader struct {
	o       ReadOptions
	file    *rawFile
	text    *textfile.Reader // after open
	src     source
	started bool
	// compressed says that text is decompressed.
	compressed bool
	unit       string // what LineError.Line counts
	reuse      bool   // an entity is valid until the next Next
	err        error
}

// NewReader returns a Reader of r. It does not read from r until the first Next.
func NewReader(r io.Reader, o ReadOptions) *Reader {
	o.setDefaults()
	return &Reader{o: o, file: &rawFile{r: r}}
}

func (o *ReadOptions) setDefaults() {
	if o.PartitionKey == "" {
		o.PartitionKey = edm.PartitionKeyName
	}
	if o.RowKey == "" {
		o.RowKey = edm.RowKeyName
	}
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	if o.PageBytes == 0 {
		o.PageBytes = 512 << 20
	}
}

// Bytes returns the number of bytes read from the file, before decompression. It is safe
// for concurrent use.
func (r *Reader) Bytes() int64 { return r.file.n.Load() }

// Compressed reports whether the file is compressed. It is known after the first Next.
func (r *Reader) Compressed() bool { return r.compressed }

// Next returns the next entity, which is valid in the data model. A *LineError concerns
// one record; the next call returns the following record. At the end Next returns
// io.EOF. All other errors are permanent.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	if !r.started {
		r.started = true
		if err := r.start(); err != nil {
			return Record{}, r.setErr(err)
		}
	}
	rec, err := r.src.next()
	if err == nil {
		err = edm.CheckEntity(&rec.Entity)
	}
	switch {
	case err == nil:
		return rec, nil
	case isRowError(err):
		return rec, r.lineError(lineRange{rec.First, rec.Last}, err)
	}
	return Record{}, r.setErr(err)
}

// lineError returns the error of the record in these lines.
func (r *Reader) lineError(of lineRange, cause error) *LineError {
	return &LineError{File: r.o.Name, Line: of.first, Last: of.last, Unit: r.unit, Cause: cause}
}

func (r *Reader) setErr(err error) error {
	if err != io.EOF {
		err = fmt.Errorf("%s: %w", r.o.Name, err)
	}
	r.err = err
	return err
}

func (r *Reader) start() (err error) {
	if r.o.Format == Parquet {
		r.src, err = newParquetSource(r.file, &r.o, r.reuse)
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	if r.o.Format == CSV {
		src, err := newCSVSource(r.text, &r.o, r.reuse)
		r.src = src
		return err
	}
	parser := entityParser{o: odata.ParseOptions{PartitionKey: r.o.PartitionKey, RowKey: r.o.RowKey, Exact: true}}
	if r.reuse {
		parser.reused = new(odata.Parser)
	}
	json := textfile.NewJSON(r.text)
	isArray, err := json.IsArray()
	if isArray {
		r.src = &arraySource{json.Items(true), parser}
	} else {
		r.src = &lineSource{text: r.text, parser: parser}
	}
	return err
}

// entityParser parses the JSON of entities. An integer that would lose digits is an error.
type entityParser struct {
	o odata.ParseOptions
	// reused, if set, has the memory of the entity, which also shares that of its text.
	reused *odata.Parser
}

func (p *entityParser) parse(text []byte) (edm.Entity, error) {
	if p.reused == nil {
		return odata.ParseEntity(text, p.o)
	}
	p.reused.Reset()
	return p.reused.ParseEntity(text, p.o)
}

// rowMemory is the memory of a row's properties. If reuse is set, each row overwrites that
// of the row before.
type rowMemory struct {
	reuse bool
	props edm.Properties
	bytes []byte
}

// get returns slices with room for count properties and size bytes.
func (m *rowMemory) get(count, size int) (edm.Properties, []byte) {
	if !m.reuse {
		return make(edm.Properties, 0, count), make([]byte, 0, size)
	}
	m.props, m.bytes = slices.Grow(m.props[:0], count), slices.Grow(m.bytes[:0], size)
	return m.props, m.bytes
}

// lineSource reads one entity per line.
type lineSource struct {
	text   *textfile.Reader
	parser entityParser
	begun  bool
}

func (s *lineSource) next() (Record, error) {
	for {
		text, line, err := s.text.Line()
		rec := Record{First: line, Last: line}
		if err != nil {
			return rec, err
		}
		if blank(text) {
			continue
		}
		first := !s.begun
		s.begun = true
		if rec.Entity, err = s.parser.parse(text); err != nil && first && bytes.TrimLeft(text, " \t")[0] != '{' {
			err = &OptionError{"Format", err.Error()}
		}
		return rec, err
	}
}

// arraySource reads the entities of one array.
type arraySource struct {
	items  *textfile.Items
	parser entityParser
}

func (s *arraySource) next() (rec Record, err error) {
	text, first, last, err := s.items.Next()
	rec.First, rec.Last = first, last
	if err == nil {
		rec.Entity, err = s.parser.parse(text)
	}
	return rec, err
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}
