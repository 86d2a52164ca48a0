package parquetfile

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

const (
	batchRows = 512
	// groupBytes is about the uncompressed size of a row group, which is in memory until it
	// is written.
	groupBytes = 64 << 20
)

// Writer writes a Parquet file. The library may panic, so each method returns a panic as an
// error.
type Writer struct {
	columns []Column
	file    *tail
	w       *parquet.GenericWriter[any]
	out     []*parquet.ColumnWriter
	batch   [][]parquet.Value // by column of the file
	rows    int               // in batch
	memory  []byte            // of the values in batch
	group   int               // bytes in the row group
	groups  int               // row groups that were begun
}

// The columns before the properties.
const fixedColumns = 3

// NewWriter returns a Writer of a file with these columns after the keys and the Timestamp.
func NewWriter(w io.Writer, columns []Column) (*Writer, error) {
	p := &Writer{columns: columns, file: &tail{w: w}}
	err := guard(func() error {
		root := &group{}
		root.add(edm.PartitionKeyName, plain(parquet.String()))
		root.add(edm.RowKeyName, plain(parquet.String()))
		root.add(edm.TimestampName, plain(parquet.Timestamp(parquet.Nanosecond)))
		types := map[string]string{}
		for _, c := range columns {
			root.add(c.Name, parquet.Optional(plain(nodeOf(c))))
			if types[c.Name] = c.Type.String(); c.Type == 0 {
				types[c.Name] = ""
				root.add(c.Name+TypeSuffix, parquet.Optional(plain(parquet.String())))
			}
		}
		if n := len(root.fields); n > maxColumns {
			return tooWide(n, 1)
		}
		text, err := json.Marshal(types)
		if err != nil {
			return err
		}
		p.w = parquet.NewGenericWriter[any](
			p.file, parquet.NewSchema("entities", root), parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(1),
			parquet.DataPageStatistics(false), // four whole values in the header of each page
			parquet.KeyValueMetadata(typesKey, string(text)),
		)
		p.out = p.w.ColumnWriters()
		p.batch = make([][]parquet.Value, len(p.out))
		return p.beginGroup()
	})
	return p, err
}

func plain(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.Plain) }

// nodeOf returns the node of a column's values.
func nodeOf(c Column) parquet.Node {
	switch c.Type {
	case edm.TypeBinary:
		return parquet.Leaf(parquet.ByteArrayType)
	case edm.TypeBoolean:
		return parquet.Leaf(parquet.BooleanType)
	case edm.TypeInt32:
		return parquet.Int(32)
	case edm.TypeInt64:
		return parquet.Int(64)
	case edm.TypeDouble:
		return parquet.Leaf(parquet.DoubleType)
	case edm.TypeGuid:
		return parquet.UUID()
	case edm.TypeDateTime:
		switch c.Unit {
		case Nanoseconds:
			return parquet.Timestamp(parquet.Nanosecond)
		case Microseconds:
			return parquet.Timestamp(parquet.Microsecond)
		}
		return parquet.Leaf(parquet.Int64Type)
	}
	return parquet.String()
}

// group is the root of a schema. Unlike a parquet.Group it keeps the order of its fields.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g *group) add(name string, n parquet.Node) { g.fields = append(g.fields, &field{n, name}) }

func (g *group) Fields() []parquet.Field { return g.fields }

func (g *group) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

type field struct {
	parquet.Node
	name string
}

func (f *field) Name() string { return f.name }

func (f *field) Value(base reflect.Value) reflect.Value { return base }

// Row writes an entity. values has the value of each column, null if it has none.
func (p *Writer) Row(row edm.Row, values []edm.Value) error {
	from := len(p.memory)
	p.memory = row.AppendPartition(p.memory)
	middle := len(p.memory)
	p.memory = row.AppendRow(p.memory)
	p.put(0, parquet.ByteArrayValue(p.memory[from:middle:middle]))
	p.put(1, parquet.ByteArrayValue(p.memory[middle:len(p.memory):len(p.memory)]))
	p.put(2, parquet.Int64Value(int64(row.Timestamp()-epoch)*100))
	p.group += len(p.memory) - from
	at := fixedColumns
	for i := range p.columns {
		v := values[i]
		if p.columns[i].Type != 0 {
			p.putOptional(at, v.Type() != 0, p.value(&p.columns[i], v))
			at++
			continue
		}
		from := len(p.memory)
		if v.Type() != 0 {
			p.memory = odata.AppendValue(p.memory, v)
			p.group += len(p.memory) - from
		}
		p.putOptional(at, v.Type() != 0, parquet.ByteArrayValue(p.memory[from:len(p.memory):len(p.memory)]))
		p.putOptional(at+1, v.Type() != 0, parquet.ByteArrayValue([]byte(v.Type().String())))
		at += 2
	}
	p.group += 8 * at
	if p.rows++; p.rows == batchRows || len(p.memory) > groupBytes/8 {
		return p.flush()
	}
	return nil
}

func (p *Writer) put(column int, v parquet.Value) { p.batch[column] = append(p.batch[column], v) }

func (p *Writer) putOptional(column int, present bool, v parquet.Value) {
	if present {
		v = v.Level(0, 1, column)
	} else {
		v = parquet.NullValue().Level(0, 0, column)
	}
	p.batch[column] = append(p.batch[column], v)
}

// value returns the value of a column with one type.
func (p *Writer) value(c *Column, v edm.Value) parquet.Value {
	switch v.Type() {
	case edm.TypeString, edm.TypeBinary, edm.TypeGuid:
		from := len(p.memory)
		p.memory = append(p.memory, v.Bytes()...)
		p.group += len(p.memory) - from
		b := p.memory[from:len(p.memory):len(p.memory)]
		if v.Type() == edm.TypeGuid {
			return parquet.FixedLenByteArrayValue(b)
		}
		return parquet.ByteArrayValue(b)
	case edm.TypeBoolean:
		return parquet.BooleanValue(v.Word() != 0)
	case edm.TypeInt32:
		return parquet.Int32Value(int32(v.Word()))
	case edm.TypeInt64:
		return parquet.Int64Value(int64(v.Word()))
	case edm.TypeDouble:
		f, _ := v.Double() // it is one
		return parquet.DoubleValue(f)
	case edm.TypeDateTime:
		return parquet.Int64Value(timeWord(edm.Ticks(v.Word()), c.Unit))
	}
	return parquet.Value{}
}

// timeWord returns t in a unit.
func timeWord(t edm.Ticks, u Unit) int64 {
	switch u {
	case Nanoseconds:
		return int64(t-epoch) * 100
	case Microseconds:
		return int64(t-epoch) / 10
	}
	return int64(t)
}

// flush passes the batch to the library.
func (p *Writer) flush() error {
	return guard(func() error {
		for i, values := range p.batch {
			if len(values) == 0 {
				continue
			}
			if _, err := p.out[i].WriteRowValues(values); err != nil {
				return err
			}
			clear(values)
			p.batch[i] = values[:0]
		}
		p.rows, p.memory = 0, p.memory[:0]
		if p.group < groupBytes {
			return nil
		}
		if err := p.w.Flush(); err != nil {
			return err
		}
		return p.beginGroup()
	})
}

// beginGroup begins a row group. It fails if Reader would refuse the file.
func (p *Writer) beginGroup() error {
	p.group = 0
	p.groups++
	// Each column has a type and an order, and for each row group a chunk and the statistics of
	// its encodings.
	structures := 2*(len(p.out)+1) + p.groups*(2*len(p.out)+1)
	if structures > maxStructures {
		return tooWide(len(p.out), p.groups)
	}
	return nil
}

func tooWide(columns, groups int) error {
	return fmt.Errorf("%d columns in %d groups of rows are more than a Parquet file can have that this program reads; export as JSONL instead", columns, groups)
}

// Close writes the rest of the file. It does not close the file.
func (p *Writer) Close() error {
	if err := p.flush(); err != nil {
		return err
	}
	return guard(func() error {
		if err := p.w.Flush(); err != nil {
			return err
		}
		p.file.held = []byte{}
		if err := p.w.Close(); err != nil {
			return err
		}
		return p.writeMetadata()
	})
}

// maxBound is the longest value that the metadata has as a bound of a row group. Reader limits the
// metadata, and the library writes two whole values for each column and row group.
const maxBound = 64

// writeMetadata writes the end of the file, without longer bounds. The index of pages, which the
// library writes, has the first bytes of all.
func (p *Writer) writeMetadata() error {
	meta := p.w.File().Metadata()
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			s := &meta.RowGroups[i].Columns[j].MetaData.Statistics
			if len(s.MinValue) > maxBound || len(s.MaxValue) > maxBound {
				s.MinValue, s.MaxValue = nil, nil
			}
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return err
	}
	if len(footer) > maxFooter {
		return tooWide(len(p.out), p.groups)
	}
	end := p.file.held
	end = end[:len(end)-len(magic)-4]
	end = end[:len(end)-int(binary.LittleEndian.Uint32(p.file.held[len(end):]))]
	end = binary.LittleEndian.AppendUint32(append(end, footer...), uint32(len(footer)))
	_, err = p.file.w.Write(append(end, magic...))
	return err
}

// tail writes to w until held is not nil, which gets the rest then.
type tail struct {
	w    io.Writer
	held []byte
}

func (t *tail) Write(b []byte) (int, error) {
	if t.held != nil {
		t.held = append(t.held, b...)
		return len(b), nil
	}
	return t.w.Write(b)
}
