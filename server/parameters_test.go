package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// heapBytes returns the bytes of all live objects.
func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// measuringStore measures the heap at each Apply.
type measuringStore struct {
	store.Store
	heap int64
}

// Apply implements store.Store.
func (s *measuringStore) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	s.heap = heapBytes()
	return s.Store.Apply(ctx, table, ops...)
}

// manyParameters is a query of 8,000 parameters that the protocol does not have.
var manyParameters = first(8000, "&", texts("%x"))

// TestMemoryOfParameters sends as many parameters as possible in a batch, and in requests
// whose bodies do not arrive. They must not occupy many times their length.
func TestMemoryOfParameters(t *testing.T) {
	s := &measuringStore{Store: storetest.NewMap(nil)}
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	h, err := server.New(server.Options{Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: s}}})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := sharedkey.NewCredential(testAccount, testKey)
	if err != nil {
		t.Fatal(err)
	}
	request := func(path string, body io.Reader) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/acct/"+path, body)
		r.Header.Set("Content-Type", "multipart/mixed; boundary=b")
		if err := credential.SignRequest(r, time.Now()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	var b strings.Builder
	b.WriteString("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n")
	for i := range 100 {
		fmt.Fprintf(&b, "--c\r\nContent-Type: application/http\r\n\r\nPUT /acct/People(PartitionKey='p',RowKey='%d')?%s HTTP/1.1\r\n\r\n{}\r\n", i, manyParameters)
	}
	b.WriteString("--c--\r\n--b--\r\n")
	r := request("$batch", strings.NewReader(b.String()))
	before := heapBytes()
	if res := serve(h, r); res.StatusCode != http.StatusAccepted || s.heap == 0 {
		t.Fatalf("status %d", res.StatusCode)
	}
	if used := s.heap - before; used > 4*int64(b.Len()) {
		t.Errorf("a batch of %d bytes occupies %d", b.Len(), used)
	}

	const requests = 20
	var bodies []*io.PipeWriter
	done := make(chan struct{}, requests)
	before = heapBytes()
	for range requests {
		body, w := io.Pipe()
		bodies = append(bodies, w)
		r := request("$batch?"+manyParameters, body)
		go func() {
			serve(h, r)
			done <- struct{}{}
		}()
		if _, err := w.Write([]byte("-")); err != nil { // returns when it was read
			t.Fatal(err)
		}
	}
	used := (heapBytes() - before) / requests
	for _, w := range bodies {
		_ = w.Close()
		<-done
	}
	if used > 4*int64(len(manyParameters)) {
		t.Errorf("a request whose URL has %d bytes occupies %d while its body arrives", len(manyParameters), used)
	}
}

// blockedWriter is the response to a client that reads nothing until release is closed.
type blockedWriter struct {
	*httptest.ResponseRecorder
	begun   chan<- int // gets the status when the first byte is written
	release <-chan struct{}
}

// Write waits, and fails.
func (w blockedWriter) Write([]byte) (int, error) {
	w.begun <- w.Code
	<-w.release
	return 0, io.ErrClosedPipe
}

// TestMemoryOfFilters sends long filters of clients that do not read the response. The filters
// must not occupy more than the budget of responses.
func TestMemoryOfFilters(t *testing.T) {
	c := newClient(t)
	h, err := server.New(server.Options{
		Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: c.store}}, Now: func() time.Time { return testTime },
	})
	if err != nil {
		t.Fatal(err)
	}
	const requests, budget, others = 60, 32 << 20, 16 << 20
	path := "/acct/People()?$filter=" + url.QueryEscape(fill(31<<10, " or ", always("a eq 1")))
	begun, release := make(chan int), make(chan struct{})
	before := heapBytes()
	status := map[int]int{}
	var all sync.WaitGroup
	for range requests {
		r := c.request(http.MethodGet, path, "")
		if err := c.credential.SignRequest(r, testTime); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { h.ServeHTTP(blockedWriter{httptest.NewRecorder(), begun, release}, r) })
		status[<-begun]++
	}
	used := heapBytes() - before
	close(release)
	all.Wait()
	if used > budget+others || status[http.StatusOK] == 0 || status[http.StatusOK]+status[http.StatusServiceUnavailable] != requests {
		t.Errorf("%d bytes for responses with the statuses %v, want at most %d", used, status, budget+others)
	}
	c.handler = h
	if res := c.signed(http.MethodGet, path, ""); res.StatusCode != http.StatusOK {
		t.Errorf("status %d after all responses", res.StatusCode)
	}
}
