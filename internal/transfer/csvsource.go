package transfer

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
)

// maxColumns limits the columns of a CSV file.
const maxColumns = textfile.MaxCells

// typeSuffix ends the name of a column that holds the types of another column.
const typeSuffix = "@type"

// column is one column of CSV.
type column struct {
	name string
	typ  edm.Type // of its values, unless another column gives it
	role role
	// of is the column whose types this column holds, for columnTypes.
	of int
	// types is the column that holds the types of this column, or -1.
	types int
	typed bool // the header has a type
	// carried is the newest type in the column types, or 0. It is that of rows without a
	// type too, unless the header has one. since is its first line.
	carried edm.Type
	since   int64
}

// role is the purpose of a column.
type role uint8

const (
	columnProperty role = iota + 1
	columnTypes         // the types of another column
	columnKey           // PartitionKey or RowKey
	columnIgnored       // Timestamp
)

// csvSource reads entities from CSV.
type csvSource struct {
	rows           *textfile.CSV
	columns        []column
	partition, row int // columns of the keys
	scratch        []byte
	memory         rowMemory
}

// newCSVSource reads the header, unless o has one.
func newCSVSource(text *textfile.Reader, o *ReadOptions, reuse bool) (*csvSource, error) {
	s := &csvSource{rows: textfile.NewCSV(text, o.Delimiter), memory: rowMemory{reuse: reuse}}
	header := o.Header
	if len(header) == 0 {
		cells, first, _, err := s.rows.Next()
		if err == io.EOF {
			err = invalid("the file is empty; the first line must name the columns")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d, header: %w", first, err)
		}
		for _, c := range cells {
			header = append(header, string(c.Text))
		}
	}
	if err := s.setHeader(header, o); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return s, nil
}

func (s *csvSource) setHeader(header []string, o *ReadOptions) error {
	if len(header) > maxColumns {
		return invalid("%d columns, at most %d are supported", len(header), maxColumns)
	}
	if slices.ContainsFunc(header, func(name string) bool { return strings.Contains(name, "\r") }) {
		return invalid("the lines end in CR, or the name of a column has one; save the file with LF or CR LF")
	}
	if len(header) == 1 && strings.ContainsAny(header[0], ",;\t|") {
		return &OptionError{"Delimiter", fmt.Sprintf("only one column, %s; choose the delimiter of the file, which is not %q", quote(header[0]), o.Delimiter)}
	}
	index := make(map[string]int, len(header)) // of property columns
	types := make(map[string]int)              // of the columns that hold their types
	for i, text := range header {
		c, err := parseColumn(text, i, o)
		if err != nil {
			return err
		}
		seen := index
		if c.role == columnTypes {
			seen = types
		}
		if _, ok := seen[c.name]; ok {
			return invalid("duplicate column %s", quote(text))
		}
		seen[c.name] = i
		s.columns = append(s.columns, c)
	}
	for i := range s.columns {
		c := &s.columns[i]
		if c.role != columnTypes {
			continue
		}
		of, ok := index[c.name]
		if !ok {
			return invalid("column %s holds types, but there is no column %s", quote(header[i]), quote(c.name))
		}
		c.of = of
		s.columns[of].types = i
	}
	var err error
	if s.partition, s.row, err = keyColumns(index, header, o); err != nil {
		return err // says that no column has the chosen name, which the next error does not
	}
	for i, c := range s.columns {
		if c.role == columnProperty && (c.name == edm.PartitionKeyName || c.name == edm.RowKeyName) {
			return invalid("column %d is named %s, but another column is chosen as that key; rename it, or choose it as the key", i+1, c.name)
		}
	}
	return nil
}

// listed formats names for a message, at most eight of them.
func listed(names []string) string {
	const most = 8
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			return b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(quote(name))
	}
	return b.String()
}

// parseColumn parses the header cell at i.
func parseColumn(text string, i int, o *ReadOptions) (column, error) {
	name, suffix, typed := strings.Cut(text, "@")
	c := column{name: name, typ: edm.TypeString, role: columnProperty, types: -1}
	if typed && "@"+suffix == typeSuffix {
		c.role = columnTypes
		return c, nil
	}
	if typed {
		t, ok := parseType([]byte(suffix))
		if !ok {
			return c, unknownType(text, suffix)
		}
		c.typ, c.typed = t, true
	}
	switch {
	case name == o.PartitionKey || name == o.RowKey:
		if c.typ != edm.TypeString {
			return c, invalid("column %s is a key; keys have type Edm.String", quote(text))
		}
		c.role = columnKey
	case name == edm.TimestampName:
		c.role = columnIgnored
	case name == "":
		return c, invalid("column %d has no name", i+1)
	case name != edm.PartitionKeyName && name != edm.RowKeyName: // setHeader refuses these
		if err := edm.CheckProperties(edm.Properties{{Name: name, Value: edm.Boolean(true)}}); err != nil {
			return c, fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return c, nil
}

func (s *csvSource) next() (Record, error) {
	cells, first, last, err := s.rows.Next()
	rec := Record{First: first, Last: last}
	switch {
	case err != nil:
		return rec, err
	case len(cells) != len(s.columns):
		return rec, invalid("%d cells, but there are %d columns", len(cells), len(s.columns))
	}
	typesErr := s.carryTypes(cells, first)
	if rec.Entity.Key, err = s.key(cells); err != nil {
		return rec, err
	}
	if typesErr != nil {
		return rec, typesErr
	}
	rec.Entity.Properties, err = s.properties(cells)
	return rec, err
}

// carryTypes notes the types of a row for the rows below, also of one that is refused. After an
// unknown type, the rows below have none.
func (s *csvSource) carryTypes(cells []textfile.Cell, line int64) (err error) {
	for i := range s.columns {
		if s.columns[i].role != columnTypes || len(cells[i].Text) == 0 {
			continue
		}
		t, ok := parseType(cells[i].Text)
		if !ok && err == nil {
			err = unknownType(s.columns[i].name+typeSuffix, string(cells[i].Text))
		}
		if of := &s.columns[s.columns[i].of]; of.carried != t {
			of.carried, of.since = t, line
		}
	}
	return err
}

// key returns both keys, in one allocation.
func (s *csvSource) key(cells []textfile.Cell) (edm.Key, error) {
	for _, at := range [...]int{s.partition, s.row} {
		if c := cells[at]; len(c.Text) == 0 && !c.Quoted {
			return edm.Key{}, invalid("column %s is empty, but every entity has that key; write an empty key as \"\"", quote(s.columns[at].name))
		}
	}
	s.scratch = append(append(s.scratch[:0], cells[s.partition].Text...), cells[s.row].Text...)
	both, n := string(s.scratch), len(cells[s.partition].Text)
	return edm.Key{Partition: both[:n], Row: both[n:]}, nil
}

// properties parses the properties. The Strings share one allocation.
func (s *csvSource) properties(cells []textfile.Cell) (edm.Properties, error) {
	count, size := 0, 0
	for i := range cells {
		c := &cells[i]
		if s.columns[i].role == columnProperty && (len(c.Text) > 0 || c.Quoted) {
			count++
			size += len(c.Text)
		}
	}
	if count == 0 {
		return nil, nil
	}
	props, memory := s.memory.get(count, size)
	for i := range cells {
		c, col := &cells[i], &s.columns[i]
		if col.role != columnProperty || len(c.Text) == 0 && !c.Quoted {
			continue
		}
		t := col.typ
		switch {
		case col.types < 0 || col.typed && len(cells[col.types].Text) == 0:
		case col.carried != 0:
			t = col.carried
		default:
			return nil, invalid("column %s has a value and no type yet; write its type in column %s, or in the header as %s@Edm.String",
				quote(col.name), quote(col.name+typeSuffix), col.name)
		}
		text := c.Text
		switch {
		case t == edm.TypeString:
			from := len(memory)
			memory = append(memory, text...)
			text = memory[from:len(memory):len(memory)]
		case t == edm.TypeDateTime:
			text = dateTime(text)
		}
		v, err := odata.ParseExact(t, text)
		if err != nil {
			err = fmt.Errorf("column %s: %w", quote(col.name), err)
			if col.carried != 0 && !col.typed && len(cells[col.types].Text) == 0 {
				err = fmt.Errorf("%w (%s is the type in line %d; if it ends there, write the type of this row in column %s)",
					err, t, col.since, quote(col.name+typeSuffix))
			}
			return nil, err
		}
		props = append(props, edm.Property{Name: col.name, Value: v})
	}
	return props, nil
}

// dateTime returns the text of a DateTime in the form of the protocol. Spreadsheets write times at midnight as YYYY-MM-DD;
// databases and data frames write a blank before the time, and some databases no minutes of the offset.
func dateTime(text []byte) []byte {
	const date = len("YYYY-MM-DD")
	switch {
	case len(text) < date || text[4] != '-' || text[7] != '-':
	case len(text) == date:
		return append(bytes.Clone(text), "T00:00:00Z"...)
	case text[date] == ' ':
		text = bytes.Clone(text)
		text[date] = 'T'
		if sign := text[len(text)-3]; sign == '+' || sign == '-' {
			text = append(text, ":00"...)
		}
	}
	return text
}

// parseType returns the type with the name s in the protocol, such as "Edm.Int64", or in
// the files of Storage Explorer, such as "Int64".
func parseType(s []byte) (edm.Type, bool) {
	bare := bytes.TrimPrefix(s, []byte("Edm."))
	for t := edm.TypeString; t <= edm.TypeGuid; t++ {
		if t.String()[len("Edm."):] == string(bare) {
			return t, true
		}
	}
	return 0, false
}

func unknownType(column, name string) error {
	return invalid("column %s has unknown type %s, want one of Edm.String, Binary, Boolean, Int32, Int64, Double, DateTime, Guid", quote(column), quote(name))
}
