package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// idleStore takes every write and does nothing.
type idleStore struct {
	store.Store
	results []store.Result
}

func (s *idleStore) Apply(_ context.Context, _ string, ops ...store.Op) ([]store.Result, error) {
	return s.results[:len(ops)], nil
}

// discard is the answer to a request that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// hundred is a batch of a hundred entities of a kilobyte and ten properties, which
// are inserted or, by their own URLs, merged.
func hundred(insert bool) []byte {
	b := []byte("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n")
	for i := range 100 {
		line := "POST http://127.0.0.1:10002/" + testAccount + "/People"
		if !insert {
			line = fmt.Sprintf("PATCH http://127.0.0.1:10002/%s/People(PartitionKey='p00417',RowKey='%09d')", testAccount, i)
		}
		b = append(b, "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+line+" HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\nDataServiceVersion: 3.0\r\nPrefer: return-no-content\r\n\r\n"...)
		b = fmt.Appendf(b, `{"PartitionKey":"p00417","RowKey":"%09d","Rating":%d,"Active":true,"Price":417.25,"Total@odata.type":"Edm.Int64","Total":"90071992547","Made@odata.type":"Edm.DateTime","Made":"2026-02-03T04:05:06.1234567Z","Id@odata.type":"Edm.Guid","Id":"a455c695-0000-4000-8000-81d3367e5a34"`, i, i)
		b = fmt.Appendf(b, `,"City":"%s","Street":"%s","Name":"%s","Note":"%s"}`+"\r\n", strings.Repeat("a", 20), strings.Repeat("b", 40), strings.Repeat("c", 30), strings.Repeat("d ", 420))
	}
	return append(b, "--changeset_c--\r\n--batch_b--\r\n"...)
}

// BenchmarkBatch is what a transaction costs beside the store, per transaction of a
// hundred operations.
func BenchmarkBatch(b *testing.B) {
	b.Run("operation=insert", func(b *testing.B) { benchmarkBatch(b, hundred(true)) })
	b.Run("operation=merge", func(b *testing.B) { benchmarkBatch(b, hundred(false)) })
}

func benchmarkBatch(b *testing.B, body []byte) {
	idle := &idleStore{Store: storetest.NewMap(), results: make([]store.Result, 100)}
	for i := range idle.results {
		idle.results[i] = store.Result{ETag: "W/\"datetime'2024-02-03T12%3A00%3A00.0000001Z'\"", Timestamp: edm.MaxTicks}
	}
	handler, err := server.New(server.Options{
		Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: idle}},
		Now:      func() time.Time { return testTime },
	})
	if err != nil {
		b.Fatal(err)
	}
	credential, err := sharedkey.NewCredential(testAccount, testKey)
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/"+testAccount+"/$batch", http.NoBody)
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
