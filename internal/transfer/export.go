package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/parquetfile"
	"github.com/tablerock-db/tablerock/store"
)

// Querier runs queries. It is a store or a snapshot of one.
type Querier interface {
	// Query is like the Query of store.Store.
	Query(ctx context.Context, table string, q store.Query) store.Cursor
}

// ExportOptions configures an export.
type ExportOptions struct {
	// ETags includes the ETag of each entity in JSONL. The default omits it, because an
	// ETag is only meaningful in one database.
	ETags bool
	// Delimiter separates the cells of CSV; 0 is a comma.
	Delimiter byte
	// Progress is called periodically with the number of rows and bytes written.
	Progress func(rows, bytes int64)
	// Searched is called periodically while the columns of CSV or Parquet are searched, with
	// the number of rows read. Afterwards Progress is called.
	Searched func(rows int64)
}

// progressRows is the number of rows between two calls of Progress or Searched.
const progressRows = 1000

// flushBytes is the size at which the output is written.
const flushBytes = 64 << 10

// output buffers rows.
type output struct {
	w           io.Writer
	o           ExportOptions
	buf         []byte
	rows, bytes int64
}

// row ends the row that was appended to buf.
func (out *output) row() error {
	out.rows++
	if out.rows%progressRows == 0 && out.o.Progress != nil {
		out.o.Progress(out.rows, out.bytes+int64(len(out.buf)))
	}
	if len(out.buf) < flushBytes {
		return nil
	}
	return out.flush()
}

func (out *output) flush() error {
	n, err := out.w.Write(out.buf)
	out.bytes += int64(n)
	out.buf = out.buf[:0]
	return err
}

// Each calls write for each row of a query and stops at the first error. The row is
// valid until write returns. Its properties have the order of q.Select, if that is set.
func Each(ctx context.Context, src Querier, table string, q store.Query, write func(edm.Row) error) error {
	c := src.Query(ctx, table, q)
	defer c.Close()
	selected := newSelectedRow(q.Select)
	for c.Next() {
		row := c.Row()
		if q.Select != nil {
			row = selected.of(row)
		}
		if err := write(row); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	return c.Close()
}

// ExportJSONL writes the entities of a query as JSON, one per line, and returns their
// number.
func ExportJSONL(ctx context.Context, src Querier, table string, q store.Query, w io.Writer, o ExportOptions) (int64, error) {
	return exportJSON(ctx, src, table, q, w, o, "", "\n", "\n")
}

// ExportJSON writes the entities of a query as one JSON array and returns their number.
func ExportJSON(ctx context.Context, src Querier, table string, q store.Query, w io.Writer, o ExportOptions) (int64, error) {
	return exportJSON(ctx, src, table, q, w, o, "[\n", ",\n", "\n]\n")
}

// exportJSON writes the entities with a text before, between and after them. A text before
// begins an array.
func exportJSON(ctx context.Context, src Querier, table string, q store.Query, w io.Writer, o ExportOptions, before, between, after string) (int64, error) {
	out := output{w: w, o: o}
	next := before
	options := odata.Options{Level: odata.Minimal, OmitETag: !o.ETags, Names: new(odata.Names)}
	err := Each(ctx, src, table, q, func(row edm.Row) error {
		out.buf = append(out.buf, next...)
		next = between
		out.buf = odata.AppendEntity(out.buf, row, options)
		return out.row()
	})
	if err != nil {
		return out.rows, err
	}
	if out.rows > 0 {
		out.buf = append(out.buf, after...)
	} else if before != "" {
		out.buf = append(out.buf, "[]\n"...)
	}
	return out.rows, out.flush()
}

// Column is a property name and its types in a set of entities.
type Column struct {
	Name  string
	types uint16            // one bit per type
	needs parquetfile.Needs // of the DateTimes
}

// Type returns the type of all values, or 0 if they have several.
func (c *Column) Type() edm.Type {
	for t := edm.TypeString; t <= edm.TypeGuid; t++ {
		if c.types == 1<<t {
			return t
		}
	}
	return 0
}

// columnIndex finds columns by name. The properties of a row mostly have the same columns as
// those of the row before; with a look-up of each name, an export as CSV needs 24 % more
// CPU (bench, BenchmarkExport).
type columnIndex struct {
	byName map[string]int
	last   []int // the column of property i of a row before
}

func (x *columnIndex) add(name string, at int) {
	if x.byName == nil {
		x.byName = map[string]int{}
	}
	x.byName[name] = at
}

// find returns the column of property i of a row, called name.
func (x *columnIndex) find(columns []Column, i int, name string) (at int, ok bool) {
	if i < len(x.last) {
		if at = x.last[i]; columns[at].Name == name {
			return at, true
		}
	}
	at, ok = x.byName[name]
	if ok {
		if i >= len(x.last) {
			x.last = append(x.last, make([]int, i+1-len(x.last))...)
		}
		x.last[i] = at
	}
	return at, ok
}

// Columns returns the columns of the entities of a query, in the order of q.Select or, if
// that is nil, in ordinal order of their names. It calls searched, if that is not nil, like
// ExportOptions.Searched.
func Columns(ctx context.Context, src Querier, table string, q store.Query, searched func(rows int64)) ([]Column, error) {
	var index columnIndex
	var columns []Column
	rows := int64(0)
	err := Each(ctx, src, table, q, func(row edm.Row) error {
		if rows++; rows%progressRows == 0 && searched != nil {
			searched(rows)
		}
		for i := range row.Len() {
			name, v := row.At(i)
			at, ok := index.find(columns, i, name)
			if !ok {
				if at = len(columns); at == maxColumns/2 {
					return invalid("more than %d property names; export as JSONL instead", at)
				}
				index.add(name, at)
				columns = append(columns, Column{Name: name})
			}
			columns[at].types |= 1 << v.Type()
			if t, ok := v.DateTime(); ok {
				columns[at].needs |= parquetfile.NeedsOf(t)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(columns, func(a, b Column) int {
		if i, j := slices.Index(q.Select, a.Name), slices.Index(q.Select, b.Name); i != j {
			return cmp.Compare(i, j)
		}
		return edm.Compare(a.Name, b.Name)
	})
	return columns, nil
}

// errChanged reports a property or a type that only the second run of a query found.
var errChanged = errors.New("the table changed during the export; export it again, or as JSONL")

// ExportCSV writes the entities of a query as CSV and returns their number. It runs the
// query twice, first for the columns. If src is not a snapshot, it fails
// when the second run finds a property, or a type of one, that the first did not.
func ExportCSV(ctx context.Context, src Querier, table string, q store.Query, w io.Writer, o ExportOptions) (int64, error) {
	columns, err := Columns(ctx, src, table, q, o.Searched)
	if err != nil {
		return 0, err
	}
	var index columnIndex
	mixed, width := make([]bool, len(columns)), len(columns)+3 // with the keys and the Timestamp
	for i := range columns {
		index.add(columns[i].Name, i)
		if mixed[i] = columns[i].Type() == 0; mixed[i] {
			width++
		}
	}
	if width > maxColumns {
		return 0, invalid("more than %d columns with those of types; export as JSONL instead", maxColumns)
	}
	out := output{w: w, o: o}
	d := cmp.Or(o.Delimiter, ',')
	out.buf = appendHeader(out.buf, columns, d)
	values := make([]edm.Value, len(columns))
	var scratch []byte
	err = Each(ctx, src, table, q, func(row edm.Row) error {
		clear(values)
		for i := range row.Len() {
			name, v := row.At(i)
			at, ok := index.find(columns, i, name)
			if !ok || columns[at].types&(1<<v.Type()) == 0 {
				return fmt.Errorf("property %s, %s: %w", quote(name), v.Type(), errChanged)
			}
			values[at] = v
		}
		scratch = row.AppendPartition(scratch[:0])
		out.buf = appendCell(out.buf, scratch, d)
		scratch = row.AppendRow(scratch[:0])
		out.buf = appendCell(append(out.buf, d), scratch, d)
		out.buf = row.Timestamp().AppendText(append(out.buf, d))
		for i := range columns {
			out.buf = appendValue(append(out.buf, d), values[i], mixed[i], d)
		}
		out.buf = append(out.buf, '\n')
		return out.row()
	})
	if err != nil {
		return out.rows, err
	}
	return out.rows, out.flush()
}

// appendHeader appends the header line.
func appendHeader(dst []byte, columns []Column, delimiter byte) []byte {
	dst = append(append(dst, edm.PartitionKeyName...), delimiter)
	dst = append(append(dst, edm.RowKeyName...), delimiter)
	dst = append(dst, edm.TimestampName...)
	for i := range columns {
		name, t := columns[i].Name, columns[i].Type()
		dst = append(append(dst, delimiter), name...)
		switch t {
		case edm.TypeString:
		case 0:
			dst = append(append(append(dst, delimiter), name...), typeSuffix...)
		default:
			dst = append(append(dst, '@'), t.String()...)
		}
	}
	return append(dst, '\n')
}

// appendValue appends the cell of v, and with mixed also the cell of its type.
func appendValue(dst []byte, v edm.Value, mixed bool, delimiter byte) []byte {
	switch v.Type() {
	case 0:
	case edm.TypeString:
		dst = appendCell(dst, v.Bytes(), delimiter)
	case edm.TypeBinary:
		if len(v.Bytes()) == 0 {
			dst = append(dst, `""`...) // an empty value, not null
		} else {
			dst = odata.AppendValue(dst, v)
		}
	default:
		dst = odata.AppendValue(dst, v)
	}
	if mixed {
		dst = append(dst, delimiter)
		if v.Type() != 0 {
			dst = append(dst, v.Type().String()...)
		}
	}
	return dst
}

// AppendCell appends text as a CSV cell, in quotes if needed. An empty text is a quoted
// empty cell; an unquoted empty cell means no value.
func AppendCell(dst, text []byte) []byte { return appendCell(dst, text, ',') }

// needsQuotes reports whether a cell needs quotes. On long texts, each IndexByte costs less
// than a tenth of bytes.ContainsAny.
func needsQuotes(text []byte, delimiter byte) bool {
	return bytes.IndexByte(text, delimiter) >= 0 || bytes.IndexByte(text, '"') >= 0 ||
		bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

func appendCell(dst, text []byte, delimiter byte) []byte {
	if len(text) > 0 && !needsQuotes(text, delimiter) {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			break
		}
		dst = append(append(dst, text[:i+1]...), '"')
		text = text[i+1:]
	}
	return append(append(dst, text...), '"')
}
