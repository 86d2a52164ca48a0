package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

// eagerStore records the size of the largest result of its cursors.
type eagerStore struct {
	store.Store
	most int // bytes of the rows of one query
}

// Ping implements store.Pinger.
func (s *eagerStore) Ping(context.Context) error { return nil }

func (s *eagerStore) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return &eagerCursor{Cursor: s.Store.Query(ctx, table, q), s: s}
}

// eagerCursor reads ahead to the end of the query, as a store on a server may.
type eagerCursor struct {
	store.Cursor
	s     *eagerStore
	rows  []edm.Entity
	begun bool
}

func (c *eagerCursor) Next() bool {
	if !c.begun {
		c.begun = true
		bytes := 0
		c.rows = append(c.rows, edm.Entity{})
		for c.Cursor.Next() {
			e := edm.EntityOf(c.Cursor.Row())
			c.rows, bytes = append(c.rows, e), bytes+edm.EntitySize(e.Key, e.Properties)
		}
		c.s.most = max(c.s.most, bytes)
	}
	if len(c.rows) == 0 {
		return false
	}
	c.rows = c.rows[1:]
	return len(c.rows) > 0
}

func (c *eagerCursor) Row() edm.Row { return c.rows[0].View() }

// TestPageOfLargeEntities reads a table of entities of about 1 MiB. A store that reads a
// page before it returns its first row needs a bounded amount of memory.
func TestPageOfLargeEntities(t *testing.T) {
	race.SkipOneGoroutine(t)
	c := newClient(t)
	const n, size = 24, 60_000
	for i := range n {
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%02d", i)}}
		for j := range 16 {
			e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprintf("P%d", j), Value: edm.Binary(make([]byte, size))})
		}
		if _, err := c.store.Apply(t.Context(), "People", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	s := &eagerStore{Store: c.store.Store}
	c.handler = quiet(t, s)
	var rows []string
	query := url.Values{}
	for page := 0; ; page++ {
		res := c.signed("GET", "/acct/People()?"+query.Encode(), "", "Accept", "application/json;odata=nometadata")
		var feed struct {
			Value []struct{ RowKey string } `json:"value"`
		}
		if err := json.NewDecoder(res.Body).Decode(&feed); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("page %d: status %d, %v", page, res.StatusCode, err)
		}
		for _, e := range feed.Value {
			rows = append(rows, e.RowKey)
		}
		next := res.Header.Get("X-Ms-Continuation-Nextpartitionkey")
		if next == "" {
			break
		}
		query.Set("NextPartitionKey", next)
		query.Set("NextRowKey", res.Header.Get("X-Ms-Continuation-Nextrowkey"))
	}
	for i := range max(n, len(rows)) {
		if len(rows) != n || rows[i] != fmt.Sprintf("%02d", i) {
			t.Fatalf("got the rows %q", rows)
		}
	}
	if s.most > 6<<20 {
		t.Errorf("a query returned %d bytes, want about 4 MiB", s.most)
	}
}
