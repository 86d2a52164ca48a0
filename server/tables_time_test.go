package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// slowStore needs two seconds for each read of tables.
type slowStore struct {
	store.Store
	now time.Time
}

func (s *slowStore) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	s.now = s.now.Add(2 * time.Second)
	return s.Store.Tables(ctx, from, limit)
}

// TestTablesPageTime queries the tables of a slow store with a filter that matches the last
// table alone. A page ends after five seconds and continues where it ended.
func TestTablesPageTime(t *testing.T) {
	const n, most = 7500, 5 * time.Second
	s := &slowStore{Store: storetest.NewMap(nil), now: testTime}
	for i := range n {
		if err := s.CreateTable(t.Context(), fmt.Sprintf("T%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(t)
	var err error
	c.handler, err = server.New(server.Options{
		Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: s}}, Now: func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	query := url.Values{"$filter": {fmt.Sprintf("TableName eq 'T%04d'", n-1)}}
	for page := 0; ; page++ {
		before := s.now
		res := c.signed("GET", "/acct/Tables?"+query.Encode(), "", "Accept", "application/json;odata=nometadata")
		var feed struct {
			Value []struct{ TableName string } `json:"value"`
		}
		if err := json.NewDecoder(res.Body).Decode(&feed); err != nil || res.StatusCode != http.StatusOK || page > n {
			t.Fatalf("page %d: status %d, %v", page, res.StatusCode, err)
		}
		if took := s.now.Sub(before); took > most+2*time.Second {
			t.Errorf("page %d took %v, want %v and one read at most", page, took, most)
		}
		for _, e := range feed.Value {
			names = append(names, e.TableName)
		}
		next := res.Header.Get("X-Ms-Continuation-Nexttablename")
		if next == "" {
			break
		}
		query.Set("NextTableName", next)
	}
	if len(names) != 1 || names[0] != fmt.Sprintf("T%04d", n-1) {
		t.Errorf("got the tables %q", names)
	}
}

// stuckStore does not return from its second read of tables.
type stuckStore struct {
	store.Store
	reads int
}

func (s *stuckStore) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if s.reads++; s.reads == 2 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Tables(ctx, from, limit)
}

// TestTablesTimeout ends a page of tables by the timeout of the client. Like a page of
// entities it has what was read, and continues.
func TestTablesTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1200
		c := newClient(t)
		for i := range n {
			if err := c.store.CreateTable(t.Context(), fmt.Sprintf("T%04d", i)); err != nil {
				t.Fatal(err)
			}
		}
		c.store.Store = &stuckStore{Store: c.store.Store}
		tables, query := 0, url.Values{"$filter": {"TableName ge 'T0700'"}, "timeout": {"1"}}
		for page := 0; ; page++ {
			res := c.signed("GET", "/acct/Tables?"+query.Encode(), "", "Accept", "application/json;odata=nometadata")
			var feed struct{ Value []any }
			if err := json.NewDecoder(res.Body).Decode(&feed); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("page %d: status %d, %v", page, res.StatusCode, err)
			}
			tables += len(feed.Value)
			next := res.Header.Get("X-Ms-Continuation-Nexttablename")
			if next == "" {
				break
			}
			query.Set("NextTableName", next)
		}
		if tables != n-700 {
			t.Errorf("got %d tables, want %d", tables, n-700)
		}
	})
}
