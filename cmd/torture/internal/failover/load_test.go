//go:build linux

package failover

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/history"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/vfs"
)

// runLoad runs the load on a server that keeps all promises, behind a proxy that may break
// them, until there are 300 batches, the server has got 200 requests for single keys, and
// enough returns true. It checks the history.
func runLoad(t *testing.T, proxy func(next http.Handler) http.Handler, enough func() bool) *history.Report {
	t.Helper()
	const account, key = "torture", "a2V5IG9mIHRoZSBzZXJ2ZXIgb2YgdGhpcyB0ZXN0cyw="
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	handler, err := server.New(server.Options{Accounts: []server.Account{{Name: account, Keys: []string{key}, WeakKeys: true, Store: db}}})
	if err != nil {
		t.Fatal(err)
	}
	var keys atomic.Int64 // requests for single keys: a fast server has 300 batches before 100
	front := httptest.NewServer(proxy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/Keys") || strings.Contains(r.URL.Path, "/Dropped") {
			keys.Add(1)
		}
		handler.ServeHTTP(w, r)
	})))
	t.Cleanup(front.Close)
	var clients []*rest.Client
	for range 3 {
		c, err := rest.NewClient(front.URL+"/"+account, account, key, requestTimeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		clients = append(clients, c)
	}
	tr := &trial{l: newLoad(t.Context(), clients, 1, 1, 8, 1000)}
	if err := tr.createTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.l.start(true)
	if err := tr.await(t.Context(), 10*time.Minute, "batches", func() bool { return tr.l.acked.Load() >= 300 && keys.Load() >= 200 && enough() }); err != nil {
		t.Fatal(err)
	}
	tr.l.stop()
	report, err := tr.report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestLoad runs the load on a correct server, and on servers with a planted fault.
func TestLoad(t *testing.T) {
	every := func(n int64, do func(w http.ResponseWriter, r *http.Request, next http.Handler) bool) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			var count atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if count.Add(1)%n != 0 || !do(w, r, next) {
					next.ServeHTTP(w, r)
				}
			})
		}
	}
	var cut atomic.Int64 // pages that ended early
	for _, c := range []struct {
		name  string
		proxy func(http.Handler) http.Handler
		want  string // "": no violation
	}{
		{"correct", func(next http.Handler) http.Handler { return next }, ""},
		{"responses are lost", every(20, func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}), ""},
		{"requests are refused", every(20, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}), ""},
		{"refused requests are done", every(20, func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			next.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}), "refused"},
		{"pages end early", every(1, func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.RawQuery, "filter") {
				return false
			}
			answer := httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			if answer.Header().Get("X-Ms-Continuation-Nextpartitionkey") != "" {
				cut.Add(1)
			}
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			_, _ = w.Write(answer.Body.Bytes()) // without the headers of the next page
			return true
		}), "a page is stale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runLoad(t, c.proxy, func() bool { return c.name != "pages end early" || cut.Load() >= 3 })
			text := strings.Join(r.Violations, "\n")
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("violations are %q, want %q", text, c.want)
			}
			if r.Acked < 300 || r.Ops < 100 {
				t.Errorf("%d batches, %d operations", r.Acked, r.Ops)
			}
		})
	}
}
