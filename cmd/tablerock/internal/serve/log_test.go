package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/requestlog"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestLogOfRequests logs requests, some with names that contain line feeds.
func TestLogOfRequests(t *testing.T) {
	e := server.Event{
		Method: "GET", Operation: "QueryEntities", Account: "acct", Table: "T\nx", Status: 200, Duration: 1500 * time.Microsecond,
		Examined: 7, Returned: 3, RequestID: "id", ClientRequestID: "mine\x1b\" y=z",
	}
	failed := e
	failed.Status, failed.Code, failed.Err = 500, "InternalError", errors.New("disk\ngone")
	gone := e
	gone.Err = errors.New("broken pipe")
	damaged := e
	damaged.Err = fmt.Errorf("stored metadata: %w", store.ErrCorrupt)
	left := failed
	left.Status, left.Err = 499, fmt.Errorf("query: %w", context.Canceled)
	for _, c := range []struct {
		name   string
		config Config
		all    bool
		event  server.Event
		want   string
	}{
		{
			"text",
			Config{LogFormat: "text"},
			true, e,
			`level=INFO msg=request method=GET operation=QueryEntities account=acct table=T\nx ` +
				`status=200 code="" ms=1.5 examined=7 returned=3 request_id=id client_request_id="mine\\x1b\\\" y=z"` + "\n",
		},
		{
			"json",
			Config{LogFormat: "json"},
			true, e,
			`"level":"INFO","msg":"request","method":"GET","operation":"QueryEntities","account":"acct","table":"T\\nx",` +
				`"status":200,"code":"","ms":1.5,"examined":7,"returned":3,"request_id":"id","client_request_id":"mine\\x1b\\\" y=z"}` + "\n",
		},
		{
			"failure",
			Config{LogFormat: "json", Quiet: true},
			false, failed,
			`"status":500,"code":"InternalError","ms":1.5,"examined":7,"returned":3,"request_id":"id",` +
				`"client_request_id":"mine\\x1b\\\" y=z","err":"disk\\ngone"}` + "\n",
		},
		{"damage beside an answer", Config{LogFormat: "json", Quiet: true}, false, damaged, `"err":"stored metadata: corrupt data"}` + "\n"},
		{"a client that has gone", Config{LogFormat: "text"}, false, gone, ""},
		{"a client that has gone before the answer", Config{LogFormat: "text"}, false, left, ""},
		{"only failures", Config{LogFormat: "text"}, false, e, ""},
		{"quiet", Config{LogFormat: "text", Quiet: true}, true, e, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.config.Stderr = &out
			log, _, err := c.config.openLog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			requestlog.New(log, c.all).Observe(c.event)
			if got := out.String(); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("the log is\n%swant it to end in\n%s", got, c.want)
			}
		})
	}
}

// TestDebugLog checks that --debug writes all requests and the details to its file, and
// nothing more than without it to standard error.
func TestDebugLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debug.log")
	if err := os.WriteFile(file, []byte("of yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--in-memory", "-d", file)
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`)
	r.stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of yesterday\n", "level=DEBUG msg=request method=POST operation=CreateTable", `msg="waiting for running requests"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the debug log has no %s: %s", want, text)
		}
	}
	if got := r.stderr.String(); strings.Contains(got, "DEBUG") || strings.Contains(got, "msg=request") {
		t.Errorf("standard error has %q, want no details and no requests", got)
	}
}

// TestReopenDebugLog renames the file of --debug, as a rotation of logs does. After SIGHUP the
// server writes to a new one. If it cannot make one, it writes to the old one.
func TestReopenDebugLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debug.log")
	r := start(t, "--in-memory", "-d", file)
	rename := func(to string) {
		t.Helper()
		if err := os.Rename(file, file+to); err != nil {
			t.Fatal(err)
		}
	}
	query := func(table string) {
		t.Helper()
		r.want(t, http.StatusNotFound, http.MethodGet, r.url+"/"+table+"()", "")
	}
	query("First")
	rename(".1")
	r.hangUp(t, "no certificate to read again")
	query("Second")
	rename(".2")
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	r.hangUp(t, "the file of --debug stays as it was")
	query("Third")
	r.stop()
	for name, want := range map[string][]string{".1": {"First"}, ".2": {"Second", "Third"}} {
		text, err := os.ReadFile(file + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"First", "Second", "Third"} {
			if got := strings.Contains(string(text), "table="+table); got != slices.Contains(want, table) {
				t.Errorf("%s has the query of %s: %v", name, table, got)
			}
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "100": 100, "64KiB": 64 << 10, "3 MiB": 3 << 20, "1GiB": 1 << 30} {
		var got Size
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("Set(%q) = %d, %v; want %d", text, got, err, want)
		}
		var again Size
		if err := again.Set(got.String()); err != nil || again != got {
			t.Errorf("%d is printed as %s, which is %d, %v", got, &got, again, err)
		}
	}
	for _, text := range []string{"", "-1", "x", "1.5MiB", "1MB", "99999999999GiB", "9223372036854775808"} {
		var got Size
		if err := got.Set(text); err == nil {
			t.Errorf("Set(%q) = %d, want an error", text, got)
		}
	}
}

// TestConnectionLimit checks that connections leave files to the databases: one that cannot open a
// file for a write is read-only until the server is started again.
func TestConnectionLimit(t *testing.T) {
	for _, c := range []struct{ asked, files, accounts, want int }{
		{8192, 20000, 1, 8192},
		{8192, 1024, 1, 768},
		{10, 1024, 1, 10},
		{10, 1, 1, 1},
		{8192, 64, 1, 24},
		{8192, 1024, 100, 192},
		{8192, 1024, 200, 128},
	} {
		var out bytes.Buffer
		s := service{
			Config: &Config{MaxConns: c.asked, LogFormat: "text", Stderr: &out},
			open:   &databaseSet{open: make(map[string]database), backends: pgbackend.NewSet(postgres.Options{})},
		}
		for i := range c.accounts {
			s.open.open[fmt.Sprint(i)] = database{}
		}
		s.log, _, _ = s.openLog(t.Context())
		if got := s.connections(c.files); got != c.want || (out.Len() > 0) != (c.want < c.asked) {
			t.Errorf("%d connections with %d files and %d accounts: %d, want %d; log %q", c.asked, c.files, c.accounts, got, c.want, &out)
		}
	}
}

// TestConnectionLimitOfBackends checks that connections leave files to the pools of PostgreSQL, of which accounts at one
// URL share one.
func TestConnectionLimitOfBackends(t *testing.T) {
	server := pgtest.Start(t, "fsync=off")
	c := &Config{MaxConns: 8192, Backend: pgbackend.Flags{AllowAsync: true}, BackendConns: 100, LogFormat: "text", Stderr: io.Discard}
	s := service{Config: c, open: c.newDatabaseSet(slog.New(slog.DiscardHandler))}
	s.log, _, _ = s.openLog(t.Context())
	defer func() {
		if err := s.open.close(); err != nil {
			t.Error(err)
		}
	}()
	var accounts []account
	for i, want := range []int{512 - 32 - 102, 512 - 32 - 2*102} {
		url := server.NewDatabase(t)
		if err := postgres.Init(t.Context(), url, &postgres.Options{AllowAsync: true}); err != nil {
			t.Fatal(err)
		}
		u, err := pgbackend.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			accounts = append(accounts, account{name: fmt.Sprint("shop", len(accounts)), backend: u})
		}
		if s.dbs, err = s.open.of(t.Context(), accounts); err != nil {
			t.Fatal(err)
		}
		if got := s.connections(512); got != want {
			t.Errorf("%d databases: %d connections of 512 files, want %d", i+1, got, want)
		}
	}
}
