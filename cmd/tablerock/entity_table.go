package main

import (
	"context"
	"io"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// writeEntityArray writes what q finds as one JSON document.
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

// writeEntityTable writes what q finds as a table for people. It asks twice, first for
// columns and their widths, so that a table of any length needs no memory; src answers
// both times of one moment.
func writeEntityTable(ctx context.Context, src transfer.Querier, table string, q store.Query, w io.Writer) error {
	columns, err := transfer.Columns(ctx, src, table, q)
	if err != nil {
		return err
	}
	heads := []string{edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName}
	index := map[string]int{}
	for _, c := range columns {
		index[c.Name] = len(heads)
		heads = append(heads, c.Name)
	}
	widths := widthsOf(heads)
	err = transfer.Each(ctx, src, table, q, func(row edm.Row) error {
		widths.fit(cellsOf(row, index, len(heads)))
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, widths.line(heads)+"\n"); err != nil {
		return err
	}
	return transfer.Each(ctx, src, table, q, func(row edm.Row) error {
		_, err := io.WriteString(w, widths.line(cellsOf(row, index, len(heads)))+"\n")
		return err
	})
}

// cellsOf returns the n cells of row, whose properties stand where index says.
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
