package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

func TestReadEntityJSON(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		src  string
		err  error
		text string // of the error, as far as it goes
	}{
		{"an entity", t.Context(), `{"PartitionKey":"p","RowKey":"r","N":1}`, nil, ""},
		{"no entity", t.Context(), `[]`, nil, "the entity's JSON: "},
		{"a key that is refused", t.Context(), `{"PartitionKey":"a/b","RowKey":"r"}`, edm.ErrInvalid, ""},
		{"too much", t.Context(), strings.Repeat(" ", maxEntityJSON+1), edm.ErrTooLarge, "the JSON of an entity has at most "},
		{"interrupted", ended, "", context.Canceled, "read the entity from standard input: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := readEntityJSON(c.ctx, strings.NewReader(c.src))
			if c.err == nil && c.text == "" {
				if want := (edm.Key{Partition: "p", Row: "r"}); err != nil || e.Key != want || len(e.Properties) != 1 {
					t.Errorf("got %+v, error %v; want one property of %v", e, err, want)
				}
			} else if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("got error %v, want %s and %v", err, c.text, c.err)
			}
		})
	}
}

func TestWriteEntities(t *testing.T) {
	s := storetest.NewMap(nil)
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	for _, e := range []edm.Entity{
		{Key: edm.Key{Partition: "p", Row: "1"}, Properties: edm.Properties{{Name: "Age", Value: edm.Int32(7)}}},
		{Key: edm.Key{Partition: "p", Row: "two"}, Properties: edm.Properties{{Name: "Name", Value: edm.String("表\n")}}},
	} {
		if _, err := s.Apply(t.Context(), "People", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	none := edm.Key{Partition: "q"}
	for _, c := range []struct {
		name  string
		write func(context.Context, transfer.Querier, string, store.Query, io.Writer) error
		from  *edm.Key
		want  string
	}{
		{"table", writeEntityTable, nil, `
PartitionKey  RowKey  Timestamp                     Age  Name
p             1       2024-02-03T16:00:00.0000001Z  7
p             two     2024-02-03T16:00:00.0000002Z       表\n
`},
		{"empty table", writeEntityTable, &none, `
PartitionKey  RowKey  Timestamp
`},
		{"array", writeEntityArray, nil, `
[
{"odata.etag":"W/\"datetime'2024-02-03T16%3A00%3A00.0000001Z'\"","PartitionKey":"p","RowKey":"1","Timestamp":"2024-02-03T16:00:00.0000001Z","Age":7},
{"odata.etag":"W/\"datetime'2024-02-03T16%3A00%3A00.0000002Z'\"","PartitionKey":"p","RowKey":"two","Timestamp":"2024-02-03T16:00:00.0000002Z","Name":"表\n"}
]
`},
		{"empty array", writeEntityArray, &none, `
[]
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			err := c.write(t.Context(), s, "People", store.Query{From: c.from}, &got)
			if want := strings.TrimPrefix(c.want, "\n"); err != nil || got.String() != want {
				t.Errorf("got error %v and\n%s\nwant\n%s", err, got.String(), want)
			}
		})
	}
}
