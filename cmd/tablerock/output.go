package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/internal/transfer"
)

// The formats of --output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatCSV   = "csv"
)

// field is one named value of a record: a string, a number, a list.
type field struct {
	name  string
	value any
}

// record is what a command prints, in the order of its fields.
type record []field

// MarshalJSON writes r as an object that keeps its order.
func (r record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(f.value)
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

// marshal is json.Marshal without escapes for the sake of HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// printRecord prints one record: below each other in a table, else in a line.
func (a *app) printRecord(r record) error {
	w := bufio.NewWriter(a.stdout)
	switch a.output {
	case formatTable:
		widest := 0
		for _, f := range r {
			widest = max(widest, places(f.name))
		}
		for _, f := range r {
			fmt.Fprintln(w, pad(f.name, widest)+"  "+display(text(f.value)))
		}
	case formatCSV:
		printCSV(w, names(r), []record{r})
	default:
		if err := printJSON(w, r); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printList prints records that have the fields called columns.
func (a *app) printList(columns []string, list []record) error {
	w := bufio.NewWriter(a.stdout)
	switch a.output {
	case formatTable:
		printTable(w, columns, list)
	case formatCSV:
		printCSV(w, columns, list)
	case formatJSON:
		if list == nil {
			list = []record{}
		}
		if err := printJSON(w, list); err != nil {
			return err
		}
	case formatJSONL:
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

func names(r record) []string {
	var all []string
	for _, f := range r {
		all = append(all, f.name)
	}
	return all
}

func printCSV(w io.Writer, columns []string, list []record) {
	fmt.Fprintln(w, strings.Join(columns, ","))
	for _, r := range list {
		var line []byte
		for i, f := range r {
			if i > 0 {
				line = append(line, ',')
			}
			line = transfer.AppendCell(line, []byte(text(f.value)))
		}
		fmt.Fprintf(w, "%s\n", line)
	}
}

func printTable(w io.Writer, columns []string, list []record) {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = places(c)
	}
	for _, r := range list {
		for i, f := range r {
			widths[i] = max(widths[i], places(display(text(f.value))))
		}
	}
	fmt.Fprintln(w, line(columns, widths))
	for _, r := range list {
		var cells []string
		for _, f := range r {
			cells = append(cells, display(text(f.value)))
		}
		fmt.Fprintln(w, line(cells, widths))
	}
}

// line returns cells below those of their column.
func line(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(pad(c, widths[i]))
	}
	return strings.TrimRight(b.String(), " ")
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-places(s)))
}

// text returns a value as a cell.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []record, []string:
		b, err := marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return fmt.Sprint(v)
}

// mostPlaces is how much of a value a table shows.
const mostPlaces = 60

// display returns s for one cell of a terminal: in one line, without characters
// that would move the cursor, and cut where it is long.
func display(s string) string {
	plain := utf8.ValidString(s)
	width := 0
	for _, r := range s {
		plain = plain && unicode.IsGraphic(r)
		width += placesOf(r)
	}
	if !plain {
		s = strconv.QuoteToGraphic(s)
		s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
		width = places(s)
	}
	if width <= mostPlaces {
		return s
	}
	n := 0
	for i, r := range s {
		if n += placesOf(r); n >= mostPlaces {
			return s[:i] + "…"
		}
	}
	return s
}

// count returns n with commas between thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// several returns a number of things for people.
func several(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(n) + " " + thing
}

// size returns a number of bytes for people.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		if n == 1 {
			return "1 byte"
		}
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
