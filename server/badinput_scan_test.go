package server_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// endlessStore has queries that find nothing until their context ends.
type endlessStore struct{ store.Store }

func (endlessStore) Query(ctx context.Context, _ string, _ store.Query) store.Cursor {
	return &endlessCursor{ctx: ctx}
}

type endlessCursor struct{ ctx context.Context }

func (c *endlessCursor) Next() bool {
	<-c.ctx.Done()
	return false
}
func (*endlessCursor) Row() edm.Row     { return nil }
func (*endlessCursor) Resume() *edm.Key { return &edm.Key{Partition: "m", Row: "7"} }
func (c *endlessCursor) Err() error     { return c.ctx.Err() }
func (*endlessCursor) Close() error     { return nil }

// TestEndlessScans queries an endlessStore. After five seconds, or the client's timeout if
// that is shorter, the client gets an empty page with a continuation token. If the client
// disconnects, the query ends.
func TestEndlessScans(t *testing.T) {
	for _, c := range []struct {
		query  string
		leaves bool // the client disconnects after a second
		waits  time.Duration
	}{
		{"", false, 5 * time.Second},
		{"?timeout=30", false, 5 * time.Second},
		{"?timeout=2", false, 2 * time.Second},
		{"", true, time.Second},
		{"?timeout=2", true, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var events []server.Event
			h, err := server.New(server.Options{
				Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: endlessStore{storetest.NewMap(nil)}}},
				Observe:  func(e server.Event) { events = append(events, e) },
			})
			if err != nil {
				t.Fatal(err)
			}
			credential, err := sharedkey.NewCredential(testAccount, testKey)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.leaves {
				time.AfterFunc(time.Second, cancel)
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/acct/People()"+c.query, http.NoBody)
			if err := credential.SignRequest(r, time.Now()); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			res := serve(h, r)
			waited := time.Since(start)
			if c.leaves {
				if waited != c.waits || res.StatusCode < http.StatusBadRequest {
					t.Errorf("after the client disconnected, the response %d came %v later", res.StatusCode, waited-c.waits)
				}
				if len(events) != 1 || events[0].Status != 499 || events[0].Code != "" || !errors.Is(events[0].Err, context.Canceled) {
					t.Errorf("after the client disconnected, the events are %+v, want one of status %d", events, 499)
				}
				return
			}
			if next := res.Header.Get("X-Ms-Continuation-Nextrowkey"); res.StatusCode != http.StatusOK || next != "1!4!Nw--" || waited != c.waits || len(events) != 1 {
				t.Errorf("%d, token %q after %v; want an empty page after %v", res.StatusCode, next, waited, c.waits)
			}
		})
	}
}

// AccountMeta is that of a store that does nothing after ctx.
func (s endlessStore) AccountMeta(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.Store.AccountMeta(ctx)
}

// TestEndlessScanCors queries an endlessStore with a timeout. The response has the headers of
// the CORS rules, which the server reads after the timeout.
func TestEndlessScanCors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		c.want(c.signed("PUT", propertiesPath, document("<Cors>"+anyRule+"</Cors>")), response{status: 202})
		var err error
		c.handler, err = server.New(server.Options{
			Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: endlessStore{c.store}}},
			Observe:  func(e server.Event) { c.events = append(c.events, e) },
			Now:      func() time.Time { return testTime },
		})
		if err != nil {
			t.Fatal(err)
		}
		res := c.signed("GET", "/acct/People()?timeout=2", "", "Origin", "http://b.example")
		wantCors(t, res, map[string]string{"Allow-Origin": "*", "Expose-Headers": "etag"})
		if e := c.events[len(c.events)-1]; res.StatusCode != http.StatusOK || e.Err != nil {
			t.Errorf("%d, event with error %v; want a page and no error", res.StatusCode, e.Err)
		}
	})
}

// TestLargePages queries large entities. A page ends at about 4 MiB, and the pages together
// have all entities.
func TestLargePages(t *testing.T) {
	w := newPeopleServer(t)
	text := edm.String(strings.Repeat("x", edm.MaxStringUnits))
	const n = 100
	for i := range n {
		e := edm.Entity{
			Key:        edm.Key{Partition: "b", Row: fmt.Sprintf("%03d", i)},
			Properties: edm.Properties{{Name: "p", Value: text}, {Name: "q", Value: text}, {Name: "r", Value: text}},
		}
		if _, err := w.store.Apply(t.Context(), "People", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	pages, entities, query := 0, 0, ""
	for {
		get := testRequest{method: "GET", path: "/People()?$filter=PartitionKey%20eq%20'b'" + query}
		raw, res := w.exchange(get.bytes(w))
		if res == nil || res.StatusCode != http.StatusOK || len(raw) > 5<<20 {
			t.Fatalf("a page of %d bytes: %.300s", len(raw), raw)
		}
		pages++
		entities += strings.Count(string(raw), `"RowKey"`)
		next := res.Header.Get("X-Ms-Continuation-Nextpartitionkey")
		if next == "" {
			break
		}
		query = "&NextPartitionKey=" + strings.ReplaceAll(next, "!", "%21") + "&NextRowKey=" +
			strings.ReplaceAll(res.Header.Get("X-Ms-Continuation-Nextrowkey"), "!", "%21")
	}
	if entities != n || pages < 2 {
		t.Errorf("%d entities in %d pages, want %d in several", entities, pages, n)
	}
}

// TestStreams checks the limit of streams of an HTTP/2 connection.
func TestStreams(t *testing.T) {
	w := newWire(t, nil, testCertificate())
	w.tls = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} // the connection is on loopback
	conn := w.dial()
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	// The first frame of a server is SETTINGS, type 4: pairs of a name in two bytes
	// and a value in four. MAX_CONCURRENT_STREAMS is 3.
	head := make([]byte, 9)
	if _, err := io.ReadFull(conn, head); err != nil || head[3] != 4 {
		t.Fatalf("%x, %v; want a frame of settings", head, err)
	}
	settings := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	for ; len(settings) >= 6; settings = settings[6:] {
		if binary.BigEndian.Uint16(settings) == 3 {
			if n := binary.BigEndian.Uint32(settings[2:]); n != 100 {
				t.Errorf("%d streams, want 100", n)
			}
			return
		}
	}
	t.Error("no limit of streams in the settings")
}
