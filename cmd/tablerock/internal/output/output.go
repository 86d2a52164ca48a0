// Package output prints records and entities in the formats of --output.
package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// The formats.
const (
	Table = "table"
	JSON  = "json"
	JSONL = "jsonl"
	CSV   = "csv"
)

// Field is a named value of a Record: a string, a number or a list. The struct has no name
// of its own, so that other packages can write a Record as a literal without field names.
type Field = struct {
	Name  string
	Value any
}

// Record is an output record. Its fields are printed in this order.
type Record []Field

// Names returns the names of the fields.
func (r Record) Names() []string {
	var all []string
	for _, f := range r {
		all = append(all, f.Name)
	}
	return all
}

// MarshalJSON returns r as an object with its fields in order.
func (r Record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(f.Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Printer prints to W.
type Printer struct {
	W       io.Writer
	Format  string
	Columns int  // width of the terminal W; 0 if W is none
	Bold    bool // print the headers of tables in bold
}

// NewPrinter returns a Printer for w. Headers are bold on a terminal unless the environment
// forbids colors.
func NewPrinter(w io.Writer, format string) *Printer {
	p := &Printer{W: w, Format: format, Columns: progress.Columns(w)}
	p.Bold = p.Columns > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
	return p
}

// Record prints one record: in a table one field per line, cut to the width of a terminal,
// otherwise on one line.
func (p *Printer) Record(r Record) error {
	w := bufio.NewWriter(p.W)
	switch p.Format {
	case Table:
		widest := 0
		for _, f := range r {
			widest = max(widest, Width(f.Name))
		}
		for _, f := range r {
			value := printable(text(f.Value))
			if p.Columns > 0 {
				value = cut(value, max(minCellWidth, p.Columns-widest-len(separator)))
			}
			fmt.Fprintln(w, pad(f.Name, widest)+separator+value)
		}
	case CSV:
		printCSV(w, r.Names(), []Record{r})
	default:
		if err := printJSON(w, r); err != nil {
			return err
		}
	}
	return w.Flush()
}

// List prints records with the given fields.
func (p *Printer) List(columns []string, list []Record) error {
	w := bufio.NewWriter(p.W)
	switch p.Format {
	case Table:
		p.table(w, columns, list)
	case CSV:
		printCSV(w, columns, list)
	case JSON:
		if list == nil {
			list = []Record{}
		}
		if err := printJSON(w, list); err != nil {
			return err
		}
	case JSONL:
		for _, r := range list {
			if err := printJSON(w, r); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func printJSON(w io.Writer, v any) error {
	b, err := marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func printCSV(w io.Writer, columns []string, list []Record) {
	fmt.Fprintln(w, strings.Join(columns, ","))
	for _, r := range list {
		var line []byte
		for i, f := range r {
			if i > 0 {
				line = append(line, ',')
			}
			line = transfer.AppendCell(line, []byte(text(f.Value)))
		}
		fmt.Fprintf(w, "%s\n", line)
	}
}

// table prints records as a table. The first column is never cut.
func (p *Printer) table(w io.Writer, columns []string, list []Record) {
	l := newLayout(columns, p)
	var lines [][]string
	for _, r := range list {
		var cells []string
		for _, f := range r {
			cells = append(cells, printable(text(f.Value)))
		}
		l.fit(cells)
		lines = append(lines, cells)
	}
	l.choose(1)
	fmt.Fprint(w, l.head())
	for _, cells := range lines {
		fmt.Fprint(w, l.line(cells))
	}
}

// text returns the text of a value for a cell.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []Record, []string:
		b, err := marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return fmt.Sprint(v)
}
