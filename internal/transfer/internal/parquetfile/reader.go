package parquetfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

const (
	magic = "PAR1"
	// maxFooter limits the metadata of a file.
	maxFooter = 32 << 20
	// maxPage limits a page, compressed or not.
	maxPage = 128 << 20
	// maxColumns limits the columns of a file.
	maxColumns = 20_000
)

// Reader reads the rows of a Parquet file. It is not safe for concurrent use.
type Reader struct {
	file    io.ReaderAt
	size    int64
	meta    format.FileMetaData
	types   map[string]string // of typesKey
	columns []*chunk          // in the order of the schema
	group   int               // row groups that were begun
	rows    int64             // left in the row group
	head    []byte            // of a page of any column: one can have 4 MiB, and there can be thousands of columns
	held    int64             // bytes of pages in memory
	limit   int64             // of held
}

// NewReader reads the metadata of a file of size bytes. The memory of the Reader is bounded by
// pages bytes for the pages of all columns, and the metadata.
func NewReader(file io.ReaderAt, size, pages int64) (*Reader, error) {
	r := &Reader{file: file, size: size, limit: pages}
	footer, err := r.footer()
	if err != nil {
		return nil, err
	}
	switch n, err := thriftLength(footer); {
	case err != nil:
		return nil, damaged("its metadata: %v", err)
	case n != len(footer):
		return nil, damaged("its metadata has %d bytes, want %d", n, len(footer))
	}
	if err := decode(footer, &r.meta); err != nil {
		return nil, err
	}
	for _, kv := range r.meta.KeyValueMetadata {
		if kv.Key != typesKey {
			continue
		}
		if err := json.Unmarshal([]byte(kv.Value), &r.types); err != nil {
			return nil, damaged("metadata %q: %v", typesKey, err)
		}
	}
	return r, r.setColumns()
}

// footer returns the bytes of the metadata.
func (r *Reader) footer() ([]byte, error) {
	var head [4]byte
	var tail [8]byte
	if r.size < int64(len(magic)+len(tail)) {
		return nil, &Error{"it is not a Parquet file, or a truncated one: it is too short"}
	}
	if err := r.readAt(head[:], 0); err != nil {
		return nil, err
	}
	if err := r.readAt(tail[:], r.size-int64(len(tail))); err != nil {
		return nil, err
	}
	end := string(tail[4:])
	switch {
	case string(head[:]) == "PARE" || end == "PARE":
		return nil, &Error{"the Parquet file is encrypted; decrypt it first"}
	case string(head[:]) != magic:
		return nil, &Error{"it is not a Parquet file: it does not begin with " + magic}
	case end != magic:
		return nil, &Error{"the Parquet file is truncated: it does not end with " + magic + "; copy it again"}
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > maxFooter || n > r.size-int64(len(magic)+len(tail)) {
		return nil, damaged("its metadata would have %d bytes; at most %d are read", n, maxFooter)
	}
	footer := make([]byte, n)
	if err := r.readAt(footer, r.size-int64(len(tail))-n); err != nil {
		return nil, err
	}
	return footer, nil
}

// setColumns makes the columns of the schema, which must be flat.
func (r *Reader) setColumns() error {
	if len(r.meta.Schema) == 0 {
		return damaged("it has no schema")
	}
	elements := r.meta.Schema[1:]
	if n := len(elements); n > maxColumns {
		return &Error{fmt.Sprintf("the Parquet file has %d columns, at most %d are supported", n, maxColumns)}
	}
	seen := map[string]bool{}
	for i := range elements {
		e := &elements[i]
		switch {
		case e.NumChildren.Valid && e.NumChildren.V > 0 || !e.Type.Valid:
			return &Error{fmt.Sprintf("column %q is nested; a property has one value, so write its parts as columns of their own, or leave it out", e.Name)}
		case e.RepetitionType.V == format.Repeated:
			return &Error{fmt.Sprintf("column %q is a list; a property has one value, so write it as text, or leave it out", e.Name)}
		case seen[e.Name]:
			return &Error{fmt.Sprintf("the Parquet file has two columns %q; rename one", e.Name)}
		}
		seen[e.Name] = true
		c := &chunk{r: r, index: i, name: e.Name, physical: e.Type.V, optional: e.RepetitionType.V == format.Optional, fixed: int(e.TypeLength.V)}
		if c.physical == format.FixedLenByteArray && (c.fixed <= 0 || c.fixed > maxPage) {
			return damaged("column %q has values of %d bytes", e.Name, c.fixed)
		}
		if err := c.setType(e, r.types); err != nil {
			return err
		}
		r.columns = append(r.columns, c)
	}
	return nil
}

// Columns returns the number of columns.
func (r *Reader) Columns() int { return len(r.columns) }

// Name returns the name of a column.
func (r *Reader) Name(column int) string { return r.columns[column].name }

// Next moves to the next row. It returns io.EOF after the last one.
func (r *Reader) Next() error {
	for r.rows == 0 {
		if r.group == len(r.meta.RowGroups) {
			return io.EOF
		}
		if err := r.beginGroup(&r.meta.RowGroups[r.group]); err != nil {
			return fmt.Errorf("row group %d: %w", r.group, err)
		}
		r.group++
	}
	r.rows--
	for _, c := range r.columns {
		if err := c.next(); err != nil {
			return fmt.Errorf("row group %d, column %q: %w", r.group-1, c.name, err)
		}
	}
	return nil
}

// beginGroup moves to the start of a row group.
func (r *Reader) beginGroup(g *format.RowGroup) error {
	if g.NumRows < 0 || len(g.Columns) != len(r.columns) {
		return damaged("it has %d rows and %d columns; the schema has %d columns", g.NumRows, len(g.Columns), len(r.columns))
	}
	r.rows = g.NumRows
	for i, c := range r.columns {
		m := &g.Columns[i].MetaData
		start := m.DataPageOffset
		if d := m.DictionaryPageOffset; d > 0 && d < start {
			start = d
		}
		switch {
		case g.Columns[i].FilePath != "":
			return &Error{fmt.Sprintf("column %q is in another file, %q; read that", c.name, g.Columns[i].FilePath)}
		case m.Type != c.physical || m.NumValues != g.NumRows:
			return damaged("column %q has %d values of type %v; the schema and the row group say %d of %v", c.name, m.NumValues, m.Type, g.NumRows, c.physical)
		case start < int64(len(magic)) || m.TotalCompressedSize < 0 || m.TotalCompressedSize > r.size-start:
			return damaged("column %q is at offset %d with %d bytes of a file of %d bytes", c.name, start, m.TotalCompressedSize, r.size)
		}
		if err := c.begin(m.Codec, start, start+m.TotalCompressedSize); err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return nil
}

// readAt reads len(b) bytes, which the size of the file allows.
func (r *Reader) readAt(b []byte, at int64) error {
	_, err := r.file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return &Error{"the Parquet file became shorter while it was read; copy it again"}
	}
	return err
}
