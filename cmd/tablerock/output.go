package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/internal/transfer"
)

// The formats of --output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatCSV   = "csv"
)

// field is a named value of a record: a string, a number or a list.
type field struct {
	name  string
	value any
}

// record is an output record. Its fields are printed in this order.
type record []field

// MarshalJSON returns r as an object with its fields in order.
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

// printRecord prints one record: in a table one field per line, otherwise on one line.
func (a *app) printRecord(r record) error {
	w := bufio.NewWriter(a.stdout)
	switch a.output {
	case formatTable:
		widest := 0
		for _, f := range r {
			widest = max(widest, displayWidth(f.name))
		}
		for _, f := range r {
			fmt.Fprintln(w, pad(f.name, widest)+"  "+displayText(text(f.value)))
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

// printList prints records with the given fields.
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
	lines := [][]string{columns}
	for _, r := range list {
		var cells []string
		for _, f := range r {
			cells = append(cells, displayText(text(f.value)))
		}
		lines = append(lines, cells)
	}
	table := widthsOf(columns)
	for _, cells := range lines {
		table.fit(cells)
	}
	for _, cells := range lines {
		fmt.Fprintln(w, table.line(cells))
	}
}

// text returns the text of a value for a cell.
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
