package main

import (
	"context"
	"io"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// writeEntityArray writes the entities of q as one JSON array.
func writeEntityArray(ctx context.Context, src transfer.Querier, table string, q store.Query, w io.Writer) error {
	separator, buf := "[\n", []byte(nil)
	err := transfer.Each(ctx, src, table, q, func(row edm.Row) error {
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

// writeEntityTable writes the entities of q as an aligned table. It runs the query twice,
// first for the columns and their widths, so that it needs no memory for the rows. src
// must return the same entities both times.
func writeEntityTable(ctx context.Context, src transfer.Querier, table string, q store.Query, w io.Writer) error {
	columns, err := transfer.Columns(ctx, src, table, q)
	if err != nil {
		return err
	}
	headers := []string{edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName}
	index := map[string]int{}
	for _, c := range columns {
		index[c.Name] = len(headers)
		headers = append(headers, c.Name)
	}
	widths := widthsOf(headers)
	err = transfer.Each(ctx, src, table, q, func(row edm.Row) error {
		widths.fit(cellsOf(row, index, len(headers)))
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, widths.line(headers)+"\n"); err != nil {
		return err
	}
	return transfer.Each(ctx, src, table, q, func(row edm.Row) error {
		_, err := io.WriteString(w, widths.line(cellsOf(row, index, len(headers)))+"\n")
		return err
	})
}

// cellsOf returns the n cells of row. index has the cell of each property.
func cellsOf(row edm.Row, index map[string]int, n int) []string {
	cells := make([]string, n)
	key := row.Key()
	cells[0], cells[1], cells[2] = displayText(key.Partition), displayText(key.Row), row.Timestamp().String()
	for i := range row.Len() {
		name, v := row.At(i)
		cells[index[name]] = displayText(string(odata.AppendValue(nil, v)))
	}
	return cells
}
