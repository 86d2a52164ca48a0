package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// failingStore returns err from every call, and rows of a cursor before it.
type failingStore struct {
	store.Store
	err  error
	rows int
}

func (s *failingStore) CreateTable(context.Context, string) error { return s.err }
func (s *failingStore) DeleteTable(context.Context, string) error { return s.err }

func (s *failingStore) Tables(context.Context, string, int) ([]store.TableInfo, error) {
	return nil, s.err
}

func (s *failingStore) Get(context.Context, string, edm.Key) (edm.Entity, error) {
	return edm.Entity{}, s.err
}

func (s *failingStore) View(context.Context, string, edm.Key, func(edm.Row) error) error {
	return s.err
}

func (s *failingStore) Query(context.Context, string, store.Query) store.Cursor {
	return &failingCursor{s: s}
}

func (s *failingStore) Apply(context.Context, string, ...store.Op) ([]store.Result, error) {
	return nil, s.err
}
func (s *failingStore) TableMeta(context.Context, string) ([]byte, error)  { return nil, s.err }
func (s *failingStore) SetTableMeta(context.Context, string, []byte) error { return s.err }
func (s *failingStore) AccountMeta(context.Context) ([]byte, error)        { return nil, s.err }
func (s *failingStore) SetAccountMeta(context.Context, []byte) error       { return s.err }

type failingCursor struct {
	s    *failingStore
	read int
}

func (c *failingCursor) Next() bool {
	c.read++
	return c.read <= c.s.rows
}

func (c *failingCursor) Row() edm.Row {
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(c.read)}}
	return e.View()
}

func (c *failingCursor) Resume() *edm.Key {
	if c.s.rows == 0 {
		return nil
	}
	return &edm.Key{Partition: "p", Row: fmt.Sprint(c.read)}
}
func (c *failingCursor) Err() error   { return c.s.err }
func (c *failingCursor) Close() error { return nil }

const oneInsert = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
	"POST http://acct.table.example/People HTTP/1.1\r\nAccept: application/json\r\nContent-Type: application/json\r\n\r\n" +
	`{"PartitionKey":"p","RowKey":"r"}` + "\r\n--c--\r\n--b--\r\n"

// oneRead returns a batch of one read.
func oneRead(path string) string {
	return "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET http://acct.table.example" + path +
		" HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n"
}

// TestStoreCannotBeReached runs each operation on a store that fails, batches and signatures
// that refer to a stored policy included. The response says whether a write can have
// happened: a 503 means that it has not, and when to try again.
func TestStoreCannotBeReached(t *testing.T) {
	const one, batch, document = "/acct/People(PartitionKey='p',RowKey='r')", "/acct/$batch", "<SignedIdentifiers />"
	requests := []struct{ operation, method, path, body string }{
		{"GetServiceProperties", "GET", propertiesPath, ""},
		{"SetServiceProperties", "PUT", propertiesPath, "<StorageServiceProperties><Cors /></StorageServiceProperties>"},
		{"GetServiceStats", "", "", ""}, // does not use the store
		{"QueryTables", "GET", "/acct/Tables", ""},
		{"CreateTable", "POST", "/acct/Tables", `{"TableName":"Others"}`},
		{"GetTable", "GET", "/acct/Tables('People')", ""},
		{"DeleteTable", "DELETE", "/acct/Tables('People')", ""},
		{"GetTableACL", "GET", aclPath, ""},
		{"SetTableACL", "PUT", aclPath, document},
		{"QueryEntities", "GET", "/acct/People()", ""},
		{"QueryEntities", "GET", "/acct/People()?$top=0", ""},
		{"InsertEntity", "POST", "/acct/People", `{"PartitionKey":"p","RowKey":"r"}`},
		{"GetEntity", "GET", one, ""},
		{"ReplaceEntity", "PUT", one, `{"N":1}`},
		{"InsertOrReplaceEntity", "PUT", one, `{"N":1}`},
		{"MergeEntity", "PATCH", one, `{"N":1}`},
		{"MergeEntity", "MERGE", one, `{"N":1}`},
		{"InsertOrMergeEntity", "MERGE", one, `{"N":1}`},
		{"DeleteEntity", "DELETE", one, ""},
		{"Batch", "POST", batch, oneInsert},
		{"Batch", "POST", batch, oneRead("/People()")},
		{"Batch", "POST", batch, oneRead("/People(PartitionKey='p',RowKey='r')")},
	}
	for _, name := range server.Operations() {
		if !slices.ContainsFunc(requests, func(r struct{ operation, method, path, body string }) bool { return r.operation == name }) {
			t.Errorf("no request of %s", name)
		}
	}
	c := newClient(t)
	sas, err := c.credential.TableSAS(sharedkey.TableSAS{Table: "People", Identifier: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("connection refused")
	for _, f := range []struct {
		name  string
		err   error
		want  int
		code  string
		retry string
	}{
		{"unavailable", fmt.Errorf("%w: %w", store.ErrUnavailable, cause), 503, "ServerBusy", "1"},
		{"unavailable in time", fmt.Errorf("%w: %w", store.ErrUnavailable, context.DeadlineExceeded), 503, "ServerBusy", "1"},
		{"unavailable for an op", &store.OpError{Err: fmt.Errorf("%w: %w", store.ErrUnavailable, cause)}, 503, "ServerBusy", "1"},
		{"unknown", fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, cause), 500, "OperationTimedOut", ""},
		{"unknown and unavailable", errors.Join(store.ErrUnavailable, store.ErrOutcomeUnknown), 500, "OperationTimedOut", ""},
		{"time is over before the first row", context.DeadlineExceeded, 500, "OperationTimedOut", ""},
	} {
		for _, rows := range []int{0, 3} {
			c.store.Store = &failingStore{Store: c.store.Store, err: f.err, rows: rows}
			c.handler = quiet(t, c.store) // with nothing cached
			check := func(what string, res *http.Response) {
				t.Helper()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != f.want || !strings.Contains(string(body), f.code) || res.Header.Get("Retry-After") != f.retry {
					t.Errorf("%s: %s: got %d %q\n%s\nwant %d %s, Retry-After %q", f.name, what, res.StatusCode, res.Header, body, f.want, f.code, f.retry)
				}
			}
			for _, r := range requests {
				if r.path == "" || rows > 0 && !strings.Contains(r.path+r.body, "People()") {
					continue
				}
				headers := []string{"Accept", "application/json", "Content-Type", "application/json", "If-Match", "*"}
				switch {
				case r.path == batch:
					headers[3] = "multipart/mixed; boundary=b"
				case r.path != one || r.method == "GET" || strings.HasPrefix(r.operation, "InsertOr"):
					headers = headers[:4]
				}
				check(r.operation+" "+r.method, c.signed(r.method, r.path, r.body, headers...))
				if r.path == batch { // the response is in the form of the batch, whatever it contains
					headers[1] = "multipart/mixed"
					kind := c.signed(r.method, r.path, r.body, headers...).Header.Get("Content-Type")
					if !strings.HasPrefix(kind, "application/json;odata=minimalmetadata;") {
						t.Errorf("%s: a batch that does not name JSON, %q: got %q", f.name, r.body, kind)
					}
				}
			}
			if rows == 0 {
				check("signature of a policy", c.send("GET", "/acct/People()?"+sas, ""))
				check("preflight", c.send("OPTIONS", "/acct/People", "", "Origin", "http://a.example", "Access-Control-Request-Method", "GET"))
			}
		}
	}
}

// panickingStore panics in reads of tables.
type panickingStore struct{ store.Store }

func (panickingStore) Tables(context.Context, string, int) ([]store.TableInfo, error) { panic("a bug") }

// TestPanic runs an operation on a store that panics: the client gets an internal error that does not have its text, the
// event has the text and the stack, and the server goes on.
func TestPanic(t *testing.T) {
	c := newClient(t)
	c.store.Store = panickingStore{c.store.Store}
	res := c.signed("GET", "/acct/Tables", "", "Accept", "application/json")
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); res.StatusCode != 500 || !strings.Contains(text, `"code":"InternalError"`) || strings.Contains(text, "a bug") {
		t.Errorf("got %d %s, want an internal error without the cause", res.StatusCode, text)
	}
	e := c.events[0]
	if e.Status != 500 || e.Code != "InternalError" || e.Err == nil || !strings.Contains(e.Err.Error(), "a bug") ||
		!strings.Contains(e.Err.Error(), "panickingStore") {
		t.Errorf("the event is %+v, want the panic and its stack", e)
	}
	if res := c.signed("GET", "/acct/People()", "", "Accept", "application/json"); res.StatusCode != 200 {
		t.Errorf("after it, a query gets %d", res.StatusCode)
	}
}

// stalledStore reads no row before the ctx of a query ends, and resumes at a key, nil for that of the query.
type stalledStore struct {
	store.Store
	resume *edm.Key
}

func (s *stalledStore) Query(ctx context.Context, _ string, q store.Query) store.Cursor {
	return &stalledCursor{ctx, cmp.Or(s.resume, q.From, &edm.Key{})}
}

type stalledCursor struct {
	ctx    context.Context
	resume *edm.Key
}

func (c *stalledCursor) Next() bool {
	<-c.ctx.Done()
	return false
}

func (c *stalledCursor) Row() edm.Row     { return nil }
func (c *stalledCursor) Resume() *edm.Key { return c.resume }
func (c *stalledCursor) Err() error       { return c.ctx.Err() }
func (c *stalledCursor) Close() error     { return nil }

// TestPageWithoutProgress ends the time of a page that reads nothing. A client would ask for the same page for ever
// if it began where it began.
func TestPageWithoutProgress(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name, token string
		resume      *edm.Key
		want        int
	}{
		{"first page", "", nil, http.StatusInternalServerError},
		{"later page", "&NextPartitionKey=" + forged("a"), nil, http.StatusInternalServerError},
		{"a page that skips keys", "", &edm.Key{Partition: "b"}, http.StatusOK},
	} {
		c := newClient(t)
		c.store.Store = &stalledStore{c.store.Store, r.resume}
		c.handler = quiet(t, c.store)
		res := c.signed("GET", "/acct/People()?timeout=1"+r.token, "", "Accept", "application/json")
		token := res.Header.Get("X-Ms-Continuation-Nextpartitionkey")
		if res.StatusCode != r.want || (token != "") != (r.want == http.StatusOK) {
			t.Errorf("%s: status %d, continuation %q, want status %d", r.name, res.StatusCode, token, r.want)
		}
	}
}

// TestRefuseBusy refuses a request with a body, which is not read, as the service does when it is busy.
func TestRefuseBusy(t *testing.T) {
	c := newClient(t)
	w := httptest.NewRecorder()
	r := c.request("POST", "/"+testAccount+"/People", `{"PartitionKey":"a","RowKey":"1"}`, "Accept", "application/json")
	c.handler.(*server.Server).RefuseBusy(w, r)
	id := w.Header().Get("X-Ms-Request-Id")
	if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(body, `"code":"ServerBusy"`) ||
		id == "" || !strings.Contains(body, id) || w.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d %q\n%s\nwant 503 ServerBusy with the request's id and Retry-After", w.Code, w.Header(), body)
	}
	if left, err := io.ReadAll(r.Body); err != nil || len(left) == 0 {
		t.Errorf("%d bytes of the body are left, error %v; want all", len(left), err)
	}
	if len(c.events) != 1 || c.events[0].Operation != "InsertEntity" || c.events[0].Code != "ServerBusy" {
		t.Errorf("the events are %+v, want one of InsertEntity with ServerBusy", c.events)
	}
}
