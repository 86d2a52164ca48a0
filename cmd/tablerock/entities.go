package main

import (
	"bufio"
	"context"
	"io"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// printEntities prints the entities of a query.
func (a *app) printEntities(ctx context.Context, s *engine.Snapshot, table string, q store.Query) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	var err error
	switch a.output {
	case formatTable:
		err = printEntityTable(ctx, s, table, q, w)
	case formatCSV:
		_, err = transfer.ExportCSV(ctx, s, table, q, w, transfer.ExportOptions{})
	case formatJSON:
		err = printEntityArray(ctx, s, table, q, w)
	case formatJSONL:
		_, err = transfer.ExportJSONL(ctx, s, table, q, w, transfer.ExportOptions{ETags: true})
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// printEntityArray prints one JSON document.
func printEntityArray(ctx context.Context, s *engine.Snapshot, table string, q store.Query, w io.Writer) error {
	separator, buf := "[\n", []byte(nil)
	err := eachRow(ctx, s, table, q, func(row edm.Row) error {
		buf = odata.AppendEntity(append(buf[:0], separator...), row, odata.Options{Level: odata.Minimal})
		separator = ",\n"
		_, err := w.Write(buf)
		return err
	})
	if err != nil {
		return err
	}
	end := "\n]\n"
	if separator == "[\n" {
		end = "[]\n"
	}
	_, err = io.WriteString(w, end)
	return err
}

func eachRow(ctx context.Context, s *engine.Snapshot, table string, q store.Query, f func(edm.Row) error) error {
	c := s.Query(ctx, table, q)
	defer c.Close()
	for c.Next() {
		if err := f(c.Row()); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	return c.Close()
}

// printEntityTable asks twice, first for columns and their widths, so that a
// table of any length needs no memory.
func printEntityTable(ctx context.Context, s *engine.Snapshot, table string, q store.Query, w io.Writer) error {
	columns, err := transfer.Columns(ctx, s, table, q)
	if err != nil {
		return err
	}
	heads := []string{edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName}
	index := map[string]int{}
	for _, c := range columns {
		index[c.Name] = len(heads)
		heads = append(heads, c.Name)
	}
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = places(h)
	}
	err = eachRow(ctx, s, table, q, func(row edm.Row) error {
		for i, c := range cellsOf(row, index, len(heads)) {
			widths[i] = max(widths[i], places(c))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, line(heads, widths)+"\n"); err != nil {
		return err
	}
	return eachRow(ctx, s, table, q, func(row edm.Row) error {
		_, err := io.WriteString(w, line(cellsOf(row, index, len(heads)), widths)+"\n")
		return err
	})
}

// cellsOf returns the n cells of row, whose properties stand where index says.
func cellsOf(row edm.Row, index map[string]int, n int) []string {
	cells := make([]string, n)
	key := row.Key()
	cells[0], cells[1], cells[2] = display(key.Partition), display(key.Row), row.Timestamp().String()
	for i := range row.Len() {
		name, v := row.At(i)
		cells[index[name]] = display(string(odata.AppendValue(nil, v)))
	}
	return cells
}

// printEntity prints an entity that s has: below each other in a table, with
// the types.
func (a *app) printEntity(ctx context.Context, s *engine.Snapshot, table string, e edm.Entity, selected []string) error {
	switch a.output {
	case formatTable:
		columns := []string{"Name", "Type", "Value"}
		list := []record{
			{{"Name", edm.PartitionKeyName}, {"Type", edm.TypeString.String()}, {"Value", e.Key.Partition}},
			{{"Name", edm.RowKeyName}, {"Type", edm.TypeString.String()}, {"Value", e.Key.Row}},
			{{"Name", edm.TimestampName}, {"Type", edm.TypeDateTime.String()}, {"Value", e.Timestamp.String()}},
			{{"Name", "odata.etag"}, {"Type", ""}, {"Value", string(e.Timestamp.ETag())}},
		}
		for _, p := range e.Properties {
			list = append(list, record{{"Name", p.Name}, {"Type", p.Value.Type().String()}, {"Value", string(odata.AppendValue(nil, p.Value))}})
		}
		return a.printList(columns, list)
	case formatCSV:
		return a.printEntities(ctx, s, table, store.Query{From: &e.Key, Limit: 1, Select: selected})
	}
	b := odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal})
	_, err := a.stdout.Write(append(b, '\n'))
	return err
}

// printWritten prints what a write of an entity gave.
func (a *app) printWritten(key edm.Key, r store.Result) error {
	return a.printRecord(record{
		{edm.PartitionKeyName, key.Partition},
		{edm.RowKeyName, key.Row},
		{edm.TimestampName, r.Timestamp.String()},
		{"odata.etag", string(r.ETag)},
	})
}
