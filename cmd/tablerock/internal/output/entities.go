package output

import (
	"bufio"
	"context"
	"io"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Entities prints the entities of a query. The formats table and csv run it several times:
// src must return the same entities each time.
func (p *Printer) Entities(ctx context.Context, src transfer.Querier, table string, q store.Query) error {
	w := bufio.NewWriterSize(p.W, 64<<10)
	var err error
	switch p.Format {
	case Table:
		err = p.entityTable(ctx, src, table, q, w)
	case CSV:
		_, err = transfer.ExportCSV(ctx, src, table, q, w, transfer.ExportOptions{})
	case JSON:
		err = writeEntityArray(ctx, src, table, q, w)
	case JSONL:
		_, err = transfer.ExportJSONL(ctx, src, table, q, w, transfer.ExportOptions{ETags: true})
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// Entity prints an entity with the selected properties: in a table one property per line, with its
// type. In csv the columns have the order of selected.
func (p *Printer) Entity(ctx context.Context, table string, e edm.Entity, selected []string) error {
	switch p.Format {
	case Table:
		columns := []string{"Name", "Type", "Value"}
		list := []Record{
			{{"Name", edm.PartitionKeyName}, {"Type", edm.TypeString.String()}, {"Value", e.Key.Partition}},
			{{"Name", edm.RowKeyName}, {"Type", edm.TypeString.String()}, {"Value", e.Key.Row}},
			{{"Name", edm.TimestampName}, {"Type", edm.TypeDateTime.String()}, {"Value", e.Timestamp.String()}},
			{{"Name", "odata.etag"}, {"Type", ""}, {"Value", string(e.Timestamp.ETag())}},
		}
		for _, p := range e.Properties {
			list = append(list, Record{{"Name", p.Name}, {"Type", p.Value.Type().String()}, {"Value", string(odata.AppendValue(nil, p.Value))}})
		}
		return p.List(columns, list)
	case CSV:
		return p.Entities(ctx, transfer.List{e}, table, store.Query{Select: selected})
	}
	b := odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal})
	_, err := p.W.Write(append(b, '\n'))
	return err
}

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

// entityTable writes the entities of q as an aligned table, or as records. It runs the query
// for the columns, for their widths and for the lines, so that it needs no memory for the
// rows.
func (p *Printer) entityTable(ctx context.Context, src transfer.Querier, table string, q store.Query, w io.Writer) error {
	columns, err := transfer.Columns(ctx, src, table, q, nil)
	if err != nil {
		return err
	}
	headers := []string{edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName}
	keys := len(headers)
	index := map[string]int{}
	for _, c := range columns {
		index[c.Name] = len(headers)
		headers = append(headers, c.Name)
	}
	l := newLayout(headers, p)
	err = transfer.Each(ctx, src, table, q, func(row edm.Row) error {
		l.fit(cellsOf(row, index, len(headers)))
		return nil
	})
	if err != nil {
		return err
	}
	l.choose(keys)
	if _, err := io.WriteString(w, l.head()); err != nil {
		return err
	}
	return transfer.Each(ctx, src, table, q, func(row edm.Row) error {
		_, err := io.WriteString(w, l.line(cellsOf(row, index, len(headers))))
		return err
	})
}

// cellsOf returns the n cells of row. index has the cell of each property.
func cellsOf(row edm.Row, index map[string]int, n int) []string {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = absent
	}
	key := row.Key()
	cells[0], cells[1], cells[2] = printable(key.Partition), printable(key.Row), row.Timestamp().String()
	var buf []byte
	for i := range row.Len() {
		name, v := row.At(i)
		buf = odata.AppendValue(buf[:0], v)
		cells[index[name]] = printable(string(buf))
	}
	return cells
}
