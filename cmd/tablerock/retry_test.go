package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/tabletest"
)

// flaky starts a server that throttles, and cuts connections before and after writes. The
// first request has the number first. From the request with the number in refuseFrom on, it
// refuses all.
func flaky(t *testing.T, first int64) (address string, srv *tabletest.Server, refuseFrom *atomic.Int64) {
	t.Helper()
	srv = tabletest.New(t)
	to, err := url.Parse(srv.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to.Host})
	proxy.Transport = &http.Transport{}
	t.Cleanup(proxy.Transport.(*http.Transport).CloseIdleConnections)
	var count atomic.Int64
	count.Store(first - 1)
	refuseFrom = new(atomic.Int64)
	refuseFrom.Store(1 << 40)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := count.Add(1)
		switch {
		case n >= refuseFrom.Load():
			w.WriteHeader(http.StatusForbidden)
		case n%11 == 3:
			w.Header().Set("x-ms-retry-after-ms", "10")
			w.WriteHeader(http.StatusTooManyRequests)
		case n%11 == 5:
			panic(http.ErrAbortHandler)
		case n%11 == 7:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL + "/" + srv.Account, srv, refuseFrom
}

// TestImportInterruptions imports into a server that throttles, cuts connections before and
// after writes, and then does not exist: first the import succeeds, then it fails with the
// number of stored rows, and the same command goes on.
func TestImportInterruptions(t *testing.T) {
	const rows = 3000
	name := filepath.Join(t.TempDir(), "rows.jsonl")
	var text bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&text, "{\"PartitionKey\":\"p%02d\",\"RowKey\":\"%06d\",\"N\":%d}\n", i/1000, i, i)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	address, srv, refuseFrom := flaky(t, 1)
	args := []string{"import", "People", name, "--endpoint", address, "--account-key", srv.Key}
	var stdout, stderr bytes.Buffer
	refuseFrom.Store(12)
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitUnusable || !strings.Contains(stderr.String(), "import again to continue") {
		t.Errorf("a server that refuses: exit code %d, %s", code, &stderr)
	}
	if strings.Contains(stderr.String(), srv.Key) {
		t.Errorf("the key is printed: %s", &stderr)
	}
	stderr.Reset()
	refuseFrom.Store(1 << 40)
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	n := 0
	for e, err := range store.Entities(srv.Store.Query(t.Context(), "People", store.Query{})) {
		if v, ok := e.Properties.Get("N").Int32(); err != nil || !ok || e.Key.Row != fmt.Sprintf("%06d", v) {
			t.Fatalf("entity %v, %v", e, err)
		}
		n++
	}
	if n != rows {
		t.Errorf("%d entities, want %d", n, rows)
	}
}

// TestCopyInterruptions copies to such a server until it refuses, and then goes on.
func TestCopyInterruptions(t *testing.T) {
	const rows = 2500
	dir := t.TempDir()
	var text, stdout, stderr bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&text, "{\"PartitionKey\":\"p%02d\",\"RowKey\":\"%06d\",\"N\":%d}\n", i/1000, i, i)
	}
	if code := run(t.Context(), []string{"import", "People", "-", "--data", dir}, &text, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	address, srv, refuseFrom := flaky(t, 1)
	refuseFrom.Store(14)
	args := []string{"copy", "--from", dir, "--to", address, "--account-key", srv.Key}
	stderr.Reset()
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitUnusable || !strings.Contains(stderr.String(), "copy again to continue") {
		t.Errorf("a server that refuses: exit code %d, %s", code, &stderr)
	}
	refuseFrom.Store(1 << 40)
	stderr.Reset()
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if all := fmt.Sprintf("%s entities, %s written", quantity.Count(rows), quantity.Count(rows)); strings.Contains(stderr.String(), all) {
		t.Errorf("the second copy writes all rows again: %s", &stderr)
	}
	stderr.Reset()
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK || !strings.Contains(stderr.String(), "2,500 entities, 0 written") {
		t.Errorf("the third copy: exit code %d, %s", code, &stderr)
	}
}

// TestCutCreateTable checks that a copy and an import create their table on a server that
// throttles or cuts the connection at any of their first requests, and that they go on if the
// table is there.
func TestCutCreateTable(t *testing.T) {
	dir := t.TempDir()
	row := filepath.Join(dir, "row.jsonl")
	if err := os.WriteFile(row, []byte(`{"PartitionKey":"p","RowKey":"r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"import", "People", row, "--data", data}, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	for first := int64(1); first <= 11; first += stride(5) {
		for _, args := range [][]string{{"import", "People", row, "--endpoint"}, {"copy", "--from", data, "--to"}} {
			address, srv, _ := flaky(t, first)
			args = append(args, address, "--account-key", srv.Key)
			for again := range 2 {
				stderr.Reset()
				if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK {
					t.Errorf("%s, first request %d, time %d: exit code %d, %s", args[0], first, again+1, code, &stderr)
				}
			}
		}
	}
}

// TestRetryingIsNoted checks that a command says why it waits for a server that fails.
func TestRetryingIsNoted(t *testing.T) {
	var stdout, stderr bytes.Buffer
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("x-ms-retry-after-ms", "1")
		w.Header().Set("x-ms-error-code", "InternalError")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer srv.Close()
	args := []string{"entity", "get", "People", "p", "r", "--endpoint", srv.URL + "/shop", "--account-key", "a2V5"}
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitFailure || requests < 2 {
		t.Errorf("exit code %d after %d requests: %s", code, requests, &stderr)
	}
	// A slow machine repeats the request so late that more repetitions are noted.
	want := regexp.MustCompile(`^the server answers 500 InternalError; trying again \(1 of 6\)\n` +
		`(the server answers 500 InternalError; trying again \([2-6] of 6\)\n){0,5}tablerock: .*\n$`)
	if got := stderr.String(); !want.MatchString(got) {
		t.Errorf("printed %q, want %s", got, want)
	}
}

// TestWrongSchemeIsFinal checks that an import to a URL with the wrong scheme fails without
// repetitions, and that its message has one advice.
func TestWrongSchemeIsFinal(t *testing.T) {
	row := filepath.Join(t.TempDir(), "row.jsonl")
	if err := os.WriteFile(row, []byte(`{"PartitionKey":"p","RowKey":"r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int64
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	address := strings.Replace(srv.URL, "http:", "https:", 1) + "/shop"
	var stdout, stderr bytes.Buffer
	args := []string{"import", "People", row, "--endpoint", address, "--account-key", "a2V5"}
	code := run(t.Context(), args, nil, &stdout, &stderr)
	want := "store is unavailable: " + address + ": the server does not speak TLS: use http://\n"
	if text := stderr.String(); code != exitFailure || !strings.HasSuffix(text, want) || connections.Load() > 2 {
		t.Errorf("exit code %d after %d connections, %s, want at most 2 and %s", code, connections.Load(), text, want)
	}
}
