package transfer

import (
	"context"
	"io"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/parquetfile"
	"github.com/tablerock-db/tablerock/store"
)

// ExportParquet writes the entities of a query as a Parquet file and returns their number.
// It runs the query twice, like ExportCSV.
func ExportParquet(ctx context.Context, src Querier, table string, q store.Query, w io.Writer, o ExportOptions) (int64, error) {
	columns, err := Columns(ctx, src, table, q, o.Searched)
	if err != nil {
		return 0, err
	}
	index := make(map[string]int, len(columns))
	typed := make([]parquetfile.Column, len(columns))
	for i, c := range columns {
		index[c.Name] = i
		typed[i] = parquetfile.Column{Name: c.Name, Type: c.Type(), Unit: c.needs.Unit()}
	}
	counted := &countingWriter{w: w}
	p, err := parquetfile.NewWriter(counted, typed)
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	values := make([]edm.Value, len(columns))
	err = Each(ctx, src, table, q, func(row edm.Row) error {
		clear(values)
		for i := range row.Len() {
			name, v := row.At(i)
			at, ok := index[name]
			if !ok || columns[at].types&(1<<v.Type()) == 0 {
				return errChanged
			}
			if t, isTime := v.DateTime(); isTime && (columns[at].needs|parquetfile.NeedsOf(t)).Unit() != typed[at].Unit {
				return errChanged
			}
			values[at] = v
		}
		if rows++; rows%progressRows == 0 && o.Progress != nil {
			o.Progress(rows, counted.n)
		}
		return p.Row(row, values)
	})
	if err != nil {
		return rows, err
	}
	return rows, p.Close()
}

// countingWriter counts the bytes written to w.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// NewParquetReader returns a Reader of a Parquet file of size bytes. Its rows are counted
// from 1 instead of lines.
func NewParquetReader(file io.ReaderAt, size int64, o ReadOptions) *Reader {
	o.setDefaults()
	o.Format = Parquet
	return &Reader{o: o, file: &rawFile{at: file, size: size}, unit: "row"}
}

// parquetSource reads entities from the rows of a Parquet file.
type parquetSource struct {
	rows           *parquetfile.Reader
	partition, row int
	properties     []parquetProperty
	n              int64
	key            []byte
	memory         rowMemory
}

// parquetProperty is a column that holds a property.
type parquetProperty struct {
	name   string
	column int
	types  int // the column with the types of the values, whose column is text, or -1
}

func newParquetSource(file *rawFile, o *ReadOptions, reuse bool) (source, error) {
	rows, err := parquetfile.NewReader(file, file.size, o.PageBytes)
	if err != nil {
		return nil, err
	}
	index := make(map[string]int, rows.Columns())
	var names []string
	for i := range rows.Columns() {
		index[rows.Name(i)] = i
		names = append(names, rows.Name(i))
	}
	s := &parquetSource{rows: rows, memory: rowMemory{reuse: reuse}}
	if s.partition, s.row, err = keyColumns(index, names, o); err != nil {
		return nil, err
	}
	for i, name := range names {
		p := parquetProperty{name: name, column: i, types: -1}
		if at, ok := index[name+parquetfile.TypeSuffix]; ok && rows.IsText(i) && rows.IsText(at) {
			p.types = at
		}
		of, isTypes := strings.CutSuffix(name, parquetfile.TypeSuffix)
		values, hasValues := index[of]
		switch {
		case i == s.partition || i == s.row || name == edm.TimestampName:
			continue
		case isTypes && hasValues && rows.IsText(i) && rows.IsText(values):
			continue
		case name == edm.PartitionKeyName || name == edm.RowKeyName:
			return nil, invalid("column %s, but another column is chosen as that key; rename it, or choose it as the key", quote(name))
		}
		if err := edm.CheckProperties(edm.Properties{{Name: name, Value: edm.Boolean(true)}}); err != nil {
			return nil, invalid("column %d: %v; rename it, or leave it out", i+1, err)
		}
		s.properties = append(s.properties, p)
	}
	return s, nil
}

func (s *parquetSource) next() (Record, error) {
	if err := s.rows.Next(); err != nil {
		return Record{}, err
	}
	s.n++
	rec := Record{First: s.n, Last: s.n}
	var err error
	if rec.Entity.Key, err = s.keys(); err == nil {
		rec.Entity.Properties, err = s.values()
	}
	return rec, err
}

// keys returns both keys, in one allocation.
func (s *parquetSource) keys() (edm.Key, error) {
	s.key = s.key[:0]
	ends := [2]int{}
	for i, column := range [...]int{s.partition, s.row} {
		if s.rows.Null(column) {
			return edm.Key{}, invalid("column %s is null, but every entity has that key", quote(s.rows.Name(column)))
		}
		var err error
		if s.key, err = s.rows.AppendKey(s.key, column); err != nil {
			return edm.Key{}, s.refused(column, err)
		}
		ends[i] = len(s.key)
	}
	both := string(s.key)
	return edm.Key{Partition: both[:ends[0]], Row: both[ends[0]:]}, nil
}

// values returns the properties. Texts, Binary and Guids share one allocation.
func (s *parquetSource) values() (edm.Properties, error) {
	count, size := 0, 0
	for i := range s.properties {
		if p := &s.properties[i]; !s.rows.Null(p.column) {
			count++
			size += s.rows.Size(p.column)
		}
	}
	if count == 0 {
		return nil, nil
	}
	props, memory := s.memory.get(count, size)
	for i := range s.properties {
		p := &s.properties[i]
		if s.rows.Null(p.column) {
			continue
		}
		v, after, err := s.rows.Value(memory, p.column)
		if err == nil && p.types >= 0 {
			v, err = s.typed(v, p)
		}
		if err != nil {
			return nil, s.refused(p.column, err)
		}
		memory = after
		props = append(props, edm.Property{Name: p.name, Value: v})
	}
	return props, nil
}

// typed returns the value whose text is v, with the type of its row.
func (s *parquetSource) typed(v edm.Value, p *parquetProperty) (edm.Value, error) {
	if s.rows.Null(p.types) {
		return v, nil
	}
	name := s.rows.Bytes(p.types)
	t, ok := parseType(name)
	if !ok {
		return v, unknownType(p.name+typeSuffix, string(name))
	}
	return odata.ParseExact(t, v.Bytes())
}

// refused returns the error of a value, which concerns its row only.
func (s *parquetSource) refused(column int, err error) error {
	return invalid("column %s: %v", quote(s.rows.Name(column)), err)
}
