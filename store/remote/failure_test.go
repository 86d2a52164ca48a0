package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
	"github.com/tablerock-db/tablerock/tabletest"
)

// behind starts a server whose requests first pass before, which returns false if it has
// answered, and returns a store of it and of the server itself.
func behind(t *testing.T, before func(w http.ResponseWriter, r *http.Request, n int) bool) (through *remote.Store, direct store.Store) {
	t.Helper()
	srv := tabletest.New(t)
	to, err := url.Parse(srv.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to.Host})
	proxy.Transport = &http.Transport{}
	t.Cleanup(proxy.Transport.(*http.Transport).CloseIdleConnections)
	var count atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before(w, r, int(count.Add(1))) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return open(t, front.URL+"/"+srv.Account, srv.Key), srv.Store
}

func open(t *testing.T, address, key string) *remote.Store {
	t.Helper()
	e, err := remote.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	e.Key = key
	s, err := remote.Open(e, remote.Options{Retries: 3, RetryDelay: time.Millisecond, MaxRetryDelay: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func entity(row string, n int32) edm.Entity {
	return edm.Entity{Key: edm.Key{Partition: "p", Row: row}, Properties: edm.Properties{{Name: "N", Value: edm.Int32(n)}}}
}

func busy(w http.ResponseWriter, after string) {
	w.Header().Set("Retry-After", after)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy.\nRequestId:1"}}}`)
}

// TestThrottled checks that requests that a busy server refuses are repeated, by its
// Retry-After and not forever.
func TestThrottled(t *testing.T) {
	t.Parallel()
	var until atomic.Int64
	until.Store(2)
	s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if int64(n) > until.Load() {
			return true
		}
		busy(w, "1")
		return false
	})
	begin := time.Now()
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("two answers with Retry-After: 1 were repeated after %v", took)
	}
	until.Store(1 << 40)
	_, err := s.Apply(t.Context(), "People", store.Insert(entity("1", 1)))
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "503 ServerBusy: The server is busy") {
		t.Errorf("a server that stays busy: %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
}

// TestCutAfterWrite cuts the connection before and after the server has the write.
func TestCutAfterWrite(t *testing.T) {
	var mode atomic.Value
	mode.Store("")
	s, direct := behind(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if mode.Load() == "" {
			return true
		}
		_, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	})
	ctx := t.Context()
	if err := s.CreateTable(ctx, "People"); err != nil {
		t.Fatal(err)
	}
	mode.Store("cut")
	ops := []store.Op{store.Insert(entity("1", 1)), store.Insert(entity("2", 2))}
	for n := 1; n <= 2; n++ {
		if _, err := s.Apply(ctx, "People", ops[:n]...); !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a cut in a write of %d operations: %v, want ErrOutcomeUnknown", n, err)
		}
	}
	if err := s.DeleteTable(ctx, "People"); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a cut in DeleteTable: %v, want ErrOutcomeUnknown", err)
	}
	if _, err := s.Get(ctx, "People", edm.Key{Partition: "p", Row: "1"}); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a cut in Get: %v, want ErrUnavailable", err)
	}
	mode.Store("")
	if _, err := direct.Get(ctx, "People", entity("1", 1).Key); !errors.Is(err, store.ErrEntityNotFound) {
		t.Errorf("after the cuts: %v", err)
	}
}

// TestBusyProxy answers 408 or 5xx by a proxy, after the server has executed the write. Such a
// write is not repeated, and its outcome is unknown. A proxy that answers instead of the
// server of a read is unavailable.
func TestBusyProxy(t *testing.T) {
	t.Parallel()
	var status, requests atomic.Int64
	s, direct := behind(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		requests.Add(1)
		if status.Load() == 0 {
			return true
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "<html><body>upstream reset</body></html>")
		return false
	})
	ctx := t.Context()
	if err := s.CreateTable(ctx, "People"); err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Apply(ctx, "People", store.Insert(entity("1", 1))); err != nil {
		t.Fatal(err)
	}
	for _, code := range []int64{408, 502, 503, 504} {
		status.Store(code)
		for _, ops := range [][]store.Op{{store.Insert(entity("2", 1))}, {store.Insert(entity("2", 1)), store.Insert(entity("3", 1))}} {
			requests.Store(0)
			_, err := s.Apply(ctx, "People", ops...)
			if !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrUnavailable) || requests.Load() != 1 {
				t.Errorf("%d for %d operations: %v after %d requests, want ErrOutcomeUnknown after one", code, len(ops), err, requests.Load())
			}
		}
		if err := s.DeleteTable(ctx, "People"); !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("%d for DeleteTable: %v, want ErrOutcomeUnknown", code, err)
		}
		requests.Store(0)
		_, err := s.Get(ctx, "People", entity("1", 1).Key)
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) || requests.Load() < 2 {
			t.Errorf("%d for Get: %v after %d requests, want ErrUnavailable after several", code, err, requests.Load())
		}
	}
	cursor := s.Query(ctx, "People", store.Query{})
	if cursor.Next() || !errors.Is(cursor.Err(), store.ErrUnavailable) || cursor.Resume() == nil {
		t.Errorf("Query: error %v, resume %v; want ErrUnavailable and a key", cursor.Err(), cursor.Resume())
	}
	status.Store(0)
	again := s.Query(ctx, "People", store.Query{From: cursor.Resume()})
	if !again.Next() || again.Row().Key() != entity("1", 1).Key {
		t.Errorf("the resumed query: %v", again.Err())
	}
}

// TestThrottledRead checks that a query that a busy server refuses can be resumed.
func TestThrottledRead(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		if refuse.Load() {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return !refuse.Load()
	})
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	refuse.Store(true)
	cursor := s.Query(t.Context(), "People", store.Query{})
	if cursor.Next() || !errors.Is(cursor.Err(), store.ErrUnavailable) || cursor.Resume() == nil {
		t.Errorf("error %v, resume %v; want ErrUnavailable and a key", cursor.Err(), cursor.Resume())
	}
}

// TestCutInRead checks that a read is repeated.
func TestCutInRead(t *testing.T) {
	s, _ := behind(t, func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if r.Method == http.MethodGet && n%2 == 0 {
			panic(http.ErrAbortHandler)
		}
		return true
	})
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Tables(t.Context(), "", 0); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestNoServer checks that nothing happened at an address without a server, and that the
// error has no signature.
func TestNoServer(t *testing.T) {
	const address = "127.0.0.1:1" // another program can take a port of net.Listen after its Close
	e, err := remote.ParseURL("http://" + address + "/shop?sv=2019-02-02&sig=verysecret")
	if err != nil {
		t.Fatal(err)
	}
	s, err := remote.Open(e, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, applied := s.Apply(t.Context(), "People", store.Insert(entity("1", 1)))
	_, listed := s.Tables(t.Context(), "", 0)
	for _, err := range []error{applied, listed, s.CreateTable(t.Context(), "People")} {
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) ||
			strings.Contains(err.Error(), "verysecret") || !strings.Contains(err.Error(), address) {
			t.Errorf("got %v, want ErrUnavailable with the address alone", err)
		}
	}
}

// TestWrongKey checks the error of a refused credential.
func TestWrongKey(t *testing.T) {
	s := open(t, tabletest.New(t).Endpoint, testKey)
	_, err := s.Tables(t.Context(), "", 0)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "403 AuthenticationFailed") || strings.Contains(err.Error(), testKey) {
		t.Errorf("got %v, want fs.ErrPermission", err)
	}
}

// TestContextEnds ends the ctx of a write to a server that does not answer: the outcome is
// not known.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	got := make(chan struct{}, 1)
	s, _ := behind(t, func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		if slow.Load() {
			_, _ = io.ReadAll(r.Body)
			got <- struct{}{}
			<-r.Context().Done()
			return false
		}
		return true
	})
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	if _, err := s.Apply(ctx, "People", store.Insert(entity("1", 1))); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("got %v, want ErrOutcomeUnknown", err)
	}
	slow.Store(false)
	cursor := s.Query(ctx, "People", store.Query{})
	if cursor.Next() || cursor.Err() != context.Canceled || cursor.Resume() == nil {
		t.Errorf("a query after the end of ctx: %v, resume %v", cursor.Err(), cursor.Resume())
	}
}

// TestHostileResponses checks that no response makes a call panic or succeed.
func TestHostileResponses(t *testing.T) {
	for i, body := range []string{
		"", "{", "[]", "null", `{"value":`, `{"value":[`, `{"value":[{`, `{"value":[{}]}`, `{"value":[{"PartitionKey":"p","RowKey":"r"}]}`,
		`{"value":[{"PartitionKey":"p","RowKey":"r","Timestamp":5}]}`, `{"value":[{"PartitionKey":"p","RowKey":"r","Timestamp":"x"}]}`, `{"value":[]]]]`,
		`{"value":["a"]}`, `{"value":[{"TableName":"../x"}]}`, "--\r\nHTTP/1.1\r\n", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 204\r\n", strings.Repeat(`{"a":`, 1e5),
	} {
		for _, status := range []int{200, 202, 400, 404, 500} {
			t.Run(fmt.Sprintf("%d/%d", i, status), func(t *testing.T) {
				s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, body)
					return false
				})
				ctx := t.Context()
				if e, err := s.Get(ctx, "People", edm.Key{}); err == nil {
					t.Errorf("Get returns %v", e)
				}
				c := s.Query(ctx, "People", store.Query{})
				for c.Next() {
					t.Errorf("a query returns %v", c.Row().Key())
				}
				if _, err := s.Apply(ctx, "People", store.Insert(entity("1", 1)), store.Insert(entity("2", 1))); err == nil {
					t.Error("a batch succeeds")
				}
				if list, _ := s.Tables(ctx, "", 0); len(list) > 0 {
					t.Errorf("the tables are %v", list)
				}
			})
		}
	}
}

// TestBatchAboveRequest checks the limit of a request, before anything is sent.
func TestBatchAboveRequest(t *testing.T) {
	s, direct := behind(t, func(http.ResponseWriter, *http.Request, int) bool { return true })
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	var ops []store.Op
	for i := range 100 {
		e := entity(fmt.Sprint(i), 1)
		e.Properties[0].Value = edm.Binary(make([]byte, 40_000))
		ops = append(ops, store.Insert(e))
	}
	_, err := s.Apply(t.Context(), "People", ops...)
	var rule *edm.Error
	if !errors.As(err, &rule) || rule.Rule != edm.RuleBatchBytes || !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v, want an *edm.Error of the size of the batch", err)
	}
	if _, err := s.Apply(t.Context(), "People", ops[:70]...); err != nil {
		t.Error(err)
	}
	if n := direct.Query(t.Context(), "People", store.Query{}); !n.Next() {
		t.Errorf("the batch below the limit is not stored: %v", n.Err())
	}
}

// TestRefusalText checks that the text of a refusal can be continued: it is one line, without
// the period of the server.
func TestRefusalText(t *testing.T) {
	s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"odata.error":{"code":"TableNotFound","message":{"value":"The table specified does not exist.\nRequestId:1"}}}`)
		return false
	})
	_, err := s.Get(t.Context(), "People", edm.Key{})
	if want := "the server answers 404 TableNotFound: The table specified does not exist"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNoTableServer writes to servers that answer each request alike, as a proxy or the portal of
// a network does. No write may look as if it was stored.
func TestNoTableServer(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			if status != http.StatusNoContent {
				_, _ = io.WriteString(w, "<html>hi</html>")
			}
		}))
		t.Cleanup(front.Close)
		s := open(t, front.URL+"/acct", strings.Repeat("A", 43)+"=")
		apply := func(ops ...store.Op) func() error {
			return func() error {
				_, err := s.Apply(t.Context(), "Tab", ops...)
				return err
			}
		}
		calls := map[string]func() error{
			"insert":  apply(store.Insert(entity("r", 1))),
			"replace": apply(store.InsertOrReplace(entity("r", 1))),
			"merge":   apply(store.Merge(entity("r", 1), store.Any)),
			"batch":   apply(store.Insert(entity("r", 1)), store.Insert(entity("s", 1))),
		}
		if status != http.StatusNoContent { // these have no more in their answers
			calls["delete"] = apply(store.Delete(edm.Key{Partition: "p", Row: "r"}, store.Any))
			calls["delete table"] = func() error { return s.DeleteTable(t.Context(), "Tab") }
			if status != http.StatusCreated {
				calls["create table"] = func() error { return s.CreateTable(t.Context(), "Tab") }
			}
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("%s, answered by %d: %v, want %v", name, status, err, store.ErrOutcomeUnknown)
			}
		}
	}
}

// TestContextEndsInDelay ends the ctx of a write before it waits an hour to repeat what a busy
// server refused. Nothing happened, and the write ends at once.
func TestContextEndsInDelay(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		requests.Add(1)
		busy(w, "3600")
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits, err := remote.Open(s.Endpoint(), remote.Options{MaxRetryDelay: time.Hour, Retrying: func(string, int, int) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := waits.Apply(ctx, "People", store.Insert(entity("1", 1)))
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != context.Canceled || requests.Load() != 1 {
			t.Errorf("%v after %d requests, want %v after one request", err, requests.Load(), context.Canceled)
		}
	case <-time.After(time.Minute):
		t.Error("the write waits after the end of its ctx")
	}
}

// TestCutInBody checks that a read whose response is cut in its body, each time, is one of a server
// that is not available.
func TestCutInBody(t *testing.T) {
	s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"value":[`)
		return false
	})
	cursor := s.Query(t.Context(), "People", store.Query{})
	if cursor.Next() || !errors.Is(cursor.Err(), store.ErrUnavailable) || cursor.Resume() == nil {
		t.Errorf("error %v, resume %v; want ErrUnavailable and a key", cursor.Err(), cursor.Resume())
	}
	if _, err := s.Tables(t.Context(), "", 0); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Tables: %v, want ErrUnavailable", err)
	}
}

// TestReadStatus answers pages with a status that a Table server does not use for them. No query
// may end as if the first page was the last.
func TestReadStatus(t *testing.T) {
	s, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("x-ms-continuation-NextPartitionKey", "p")
		w.Header().Set("x-ms-continuation-NextTableName", "Tab")
		w.WriteHeader(http.StatusNonAuthoritativeInfo)
		_, _ = io.WriteString(w, `{"value":[]}`)
		return false
	})
	c := s.Query(t.Context(), "People", store.Query{})
	if c.Next() || c.Err() == nil || c.Resume() == nil {
		t.Errorf("a query ends with error %v and resume %v, want an error and a key", c.Err(), c.Resume())
	}
	if list, err := s.Tables(t.Context(), "", 0); err == nil {
		t.Errorf("the tables are %v without an error", list)
	}
}

// TestReadWhileRestarting checks that a read is repeated while a server that has answered refuses
// connections, as it does while it is started again, if Options.WaitForServer is set. At an address
// without a server it is not.
func TestReadWhileRestarting(t *testing.T) {
	through, _ := behind(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Connection", "close")
		return true
	})
	if err := through.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	stores, dials, refuse := map[bool]*remote.Store{}, 0, 0
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; refuse > 0 {
			refuse--
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for _, c := range []struct {
		wait          bool
		refuse, dials int
		want          error
	}{
		{true, 1, 1, store.ErrUnavailable},
		{true, 0, 1, nil},
		{true, 3, 4, nil},
		{true, 100, 4, store.ErrUnavailable},
		{false, 0, 1, nil},
		{false, 1, 1, store.ErrUnavailable},
	} {
		s, ok := stores[c.wait]
		if !ok {
			var err error
			s, err = remote.Open(through.Endpoint(), remote.Options{Dial: dial, Retries: 3, RetryDelay: time.Millisecond, WaitForServer: c.wait})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			stores[c.wait] = s
		}
		dials, refuse = 0, c.refuse
		if _, err := s.Tables(t.Context(), "", 0); !errors.Is(err, c.want) || dials != c.dials {
			t.Errorf("WaitForServer %t, %d refused connections: error %v after %d connections, want %v after %d", c.wait, c.refuse, err, dials, c.want, c.dials)
		}
	}
}

// TestCloseWaitsForWrite closes a store while the server has a write. Close waits for the answer, and
// calls after it has begun return ErrClosed.
func TestCloseWaitsForWrite(t *testing.T) {
	got, release := make(chan struct{}), make(chan struct{})
	var executed atomic.Bool
	s, direct := behind(t, func(http.ResponseWriter, *http.Request, int) bool {
		close(got)
		<-release
		executed.Store(true)
		return true
	})
	if err := direct.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	applied, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Apply(t.Context(), "People", store.Insert(entity("1", 1)))
		applied <- err
	}()
	<-got
	go func() {
		err := s.Close()
		if !executed.Load() {
			err = errors.Join(err, errors.New("closed before the write was executed"))
		}
		closed <- err
	}()
	for ended := false; !ended; {
		err := s.View(t.Context(), "", edm.Key{}, nil) // an illegal name sends nothing
		ended = errors.Is(err, store.ErrClosed)
	}
	for range 10_000 { // a Close that does not wait ends meanwhile
		runtime.Gosched()
	}
	select {
	case err := <-closed:
		t.Errorf("Close has returned before the write, error %v", err)
		closed <- nil
	default:
	}
	close(release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-applied; err != nil {
		t.Error(err)
	}
	if _, err := s.Apply(t.Context(), "People", store.Insert(entity("2", 1))); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a write after Close: %v", err)
	}
}
