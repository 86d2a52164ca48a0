package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// idleStore accepts every write and does nothing.
type idleStore struct {
	store.Store
	results []store.Result
}

func (s *idleStore) Apply(_ context.Context, _ string, ops ...store.Op) ([]store.Result, error) {
	return s.results[:len(ops)], nil
}

// discard is a ResponseWriter that discards the body.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// hundred returns a batch that inserts or merges 100 entities of 1 KiB and ten properties.
func hundred(insert bool) []byte {
	b := []byte("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n")
	for i := range 100 {
		line := "POST http://127.0.0.1:10002/" + wireAccount + "/People"
		if !insert {
			line = fmt.Sprintf("PATCH http://127.0.0.1:10002/%s/People(PartitionKey='p00417',RowKey='%09d')", wireAccount, i)
		}
		b = append(b, "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+line+" HTTP/1.1\r\nAccept: "+
			"application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\nDataServiceVersion: 3.0\r\nPrefer: return-no-content\r\n\r\n"...)
		b = append(b, benchEntity(i)+"\r\n"...)
	}
	return append(b, "--changeset_c--\r\n--batch_b--\r\n"...)
}

// newBenchServer returns a server of st, whose time is testTime, and the credential of its
// account.
func newBenchServer(tb testing.TB, st store.Store) (http.Handler, *sharedkey.Credential) {
	tb.Helper()
	h, err := server.New(server.Options{
		Accounts: []server.Account{{Name: wireAccount, Keys: []string{wireKey}, Store: st}},
		Now:      func() time.Time { return testTime },
	})
	if err != nil {
		tb.Fatal(err)
	}
	c, err := sharedkey.NewCredential(wireAccount, wireKey)
	if err != nil {
		tb.Fatal(err)
	}
	return h, c
}

// BenchmarkBatch measures a transaction of 100 operations without the store.
func BenchmarkBatch(b *testing.B) {
	b.Run("operation=insert", func(b *testing.B) { benchmarkBatch(b, hundred(true)) })
	b.Run("operation=merge", func(b *testing.B) { benchmarkBatch(b, hundred(false)) })
}

func benchmarkBatch(b *testing.B, body []byte) {
	idle := &idleStore{Store: storetest.NewMap(nil), results: make([]store.Result, 100)}
	for i := range idle.results {
		idle.results[i] = store.Result{ETag: "W/\"datetime'2024-02-03T12%3A00%3A00.0000001Z'\"", Timestamp: edm.MaxTicks}
	}
	handler, credential := newBenchServer(b, idle)
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/"+wireAccount+"/$batch", http.NoBody)
	r.Header.Set("X-Ms-Version", "2019-02-02")
	r.Header.Set("Content-Type", "multipart/mixed; boundary=batch_b")
	r.ContentLength = int64(len(body))
	if err := credential.SignRequest(r, testTime); err != nil {
		b.Fatal(err)
	}
	source := bytes.NewReader(body)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		source.Reset(body)
		r.Body = io.NopCloser(source)
		w := discard{header: http.Header{}}
		handler.ServeHTTP(&w, r)
		if w.status != http.StatusAccepted {
			b.Fatalf("status %d", w.status)
		}
	}
}
