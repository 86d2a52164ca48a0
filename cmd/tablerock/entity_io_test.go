package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
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
