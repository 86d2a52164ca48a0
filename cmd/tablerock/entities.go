package main

import (
	"bufio"
	"context"
	"errors"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// printEntities prints the entities of a query.
func (a *app) printEntities(ctx context.Context, s reader, table string, q store.Query) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	if a.server != nil && a.output == formatTable {
		held := bulk.Hold(s)
		return errors.Join(writeEntityTable(ctx, held, table, q, w), w.Flush())
	}
	var err error
	switch a.output {
	case formatTable:
		err = writeEntityTable(ctx, s, table, q, w)
	case formatCSV:
		_, err = transfer.ExportCSV(ctx, s, table, q, w, transfer.ExportOptions{})
	case formatJSON:
		err = writeEntityArray(ctx, s, table, q, w)
	case formatJSONL:
		_, err = transfer.ExportJSONL(ctx, s, table, q, w, transfer.ExportOptions{ETags: true})
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// printEntity prints an entity of s: in a table one property per line, with its type.
func (a *app) printEntity(ctx context.Context, s reader, table string, e edm.Entity, selected []string) error {
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

// printWritten prints the key, Timestamp and ETag of an entity that was written.
func (a *app) printWritten(key edm.Key, r store.Result) error {
	return a.printRecord(record{
		{edm.PartitionKeyName, key.Partition},
		{edm.RowKeyName, key.Row},
		{edm.TimestampName, r.Timestamp.String()},
		{"odata.etag", string(r.ETag)},
	})
}
