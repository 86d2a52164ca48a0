package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/failing"
	"github.com/tablerock-db/tablerock/store"
)

// failingServer is a server that fails from one request on.
type failingServer struct {
	store   store.Store
	address string
	n, from atomic.Int64
	fail    atomic.Pointer[func(http.ResponseWriter)]
}

func newFailing(t *testing.T) *failingServer {
	t.Helper()
	f := &failingServer{}
	f.address, f.store = failing.NewServer(t, func(w http.ResponseWriter, r *http.Request, right http.Handler) {
		if f.n.Add(1) < f.from.Load() {
			right.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		(*f.fail.Load())(w)
	})
	return f
}

// stride returns 1, or n with -short: a test that would fail each request tries each n-th then.
func stride(n int64) int64 {
	if testing.Short() {
		return n
	}
	return 1
}

// run runs a command while the server fails from request n on, and returns its exit code, its
// messages, and whether the server failed.
func (f *failingServer) run(t *testing.T, n int64, args ...string) (code int, stderr string, failed bool) {
	t.Helper()
	f.n.Store(0)
	f.from.Store(n)
	var out, messages bytes.Buffer
	code = run(t.Context(), args, nil, &out, &messages)
	return code, messages.String(), f.n.Load() >= n
}

func status(code int, header, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for line := range strings.Lines(header) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

var failures = []struct {
	name string
	fail func(http.ResponseWriter)
	code int
	next string // of a read
}{
	{"403", status(403, "x-ms-error-code: AuthorizationFailure", ""), exitUnusable, "; the SAS or the role does not allow this"},
	{"busy", status(503, "x-ms-error-code: ServerBusy\nRetry-After: 3600", ""), exitFailure, "; try again later"},
	{"500", status(500, "x-ms-error-code: InternalError\nRetry-After: 3600", ""), exitFailure, "; try again later"},
	{"404", status(404, "", "<html>no such page</html>"), exitFailure, "; check that this is the address"},
	{"HTML", status(200, "Content-Type: text/html", "<html>hello</html>"), exitFailure, "; check the address"},
	{"JSON", status(200, "Content-Type: application/json", `{"status":"ok"}`), exitFailure, "; check the address"},
	{"no JSON", status(200, "Content-Type: application/json", `{"value":[{"Part`), exitFailure, ""},
}

func (f *failingServer) fill(t *testing.T, table string, rows int) {
	t.Helper()
	if err := f.store.CreateTable(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	var ops []store.Op
	for i := range rows {
		key := edm.Key{Partition: "p", Row: fmt.Sprintf("%05d", i)}
		ops = append(ops, store.Insert(edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int32(1)}}}))
		if len(ops) == 100 || i == rows-1 {
			if _, err := f.store.Apply(t.Context(), table, ops...); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
}

// TestExportFromFailing exports from a server that fails at each request. The file of the name
// stays as it was, and there is no other.
func TestExportFromFailing(t *testing.T) {
	f := newFailing(t)
	f.fill(t, "People", 1100)
	for _, name := range []string{"x.csv", "x.jsonl.gz", "x.parquet"} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		for i, c := range failures {
			f.fail.Store(&c.fail)
			for n := int64(1); ; n += stride(3) {
				old := []string{"", "old"}[(int64(i)+n)%2]
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
				if old != "" {
					writeText(t, file, old)
				}
				code, stderr, failed := f.run(t, n, "export", "People", file, "--endpoint", f.address, "--account-key", failing.Key)
				if !failed {
					if code != exitOK || n < 3 {
						t.Errorf("%s without a failure: exit code %d after %d requests, %s", name, code, n-1, stderr)
					}
					break
				}
				text, err := os.ReadFile(file)
				list, _ := os.ReadDir(dir)
				if code != c.code || !strings.Contains(stderr, c.next) || string(text) != old || (err == nil) != (old != "") || len(list) != len(old)/3 {
					t.Errorf("%s, %s from request %d on: exit code %d, %d bytes, files %v: %s", name, c.name, n, code, len(text), list, stderr)
				}
			}
		}
	}
}

// rows returns the number of entities of a table.
func (f *failingServer) rows(t *testing.T, table string) (n int) {
	t.Helper()
	for _, err := range store.Entities(f.store.Query(t.Context(), table, store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) {
			return 0
		} else if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestImportIntoFailing imports into a server that fails at each request. The message has the
// number of stored rows, and another import continues.
func TestImportIntoFailing(t *testing.T) {
	const rows = 450
	f := newFailing(t)
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "{\"PartitionKey\":\"p\",\"RowKey\":\"%05d\"}\n", i)
	}
	file := filepath.Join(t.TempDir(), "x.jsonl")
	writeText(t, file, text.String())
	for _, mode := range []string{"replace", "merge", "insert"} {
		for _, c := range failures {
			if mode != "insert" && c.name != "403" && c.name != "404" {
				continue // they are repeated for 16 s
			}
			f.fail.Store(&c.fail)
			for n := int64(1); ; n += stride(3) {
				if err := f.store.DeleteTable(t.Context(), "People"); err != nil && !errors.Is(err, store.ErrTableNotFound) {
					t.Fatal(err)
				}
				args := []string{"import", "People", file, "--mode", mode, "--endpoint", f.address, "--account-key", failing.Key}
				code, stderr, failed := f.run(t, n, args...)
				if !failed {
					if code != exitOK || n < 6 || f.rows(t, "People") != rows {
						t.Errorf("--mode %s without a failure: exit code %d after %d requests, %s", mode, code, n-1, stderr)
					}
					break
				}
				stored := f.rows(t, "People")
				state := fmt.Sprintf("(%d entities are stored in table People; import again", stored)
				unknown := strings.Contains(stderr, "the server answers 500") || strings.Contains(stderr, store.ErrOutcomeUnknown.Error())
				says := strings.Contains(stderr, state) || stored == 0 && !unknown
				if code != c.code || stored != max(0, int(n)-2)*100 || !says || strings.Contains(stderr, "before you repeat it") {
					t.Errorf("--mode %s, %s from request %d on: exit code %d, %d rows are stored: %s", mode, c.name, n, code, stored, stderr)
				}
				args[4] = "replace"
				if code, stderr, _ := f.run(t, 1<<40, args...); code != exitOK || f.rows(t, "People") != rows {
					t.Errorf("--mode %s, %s from request %d on, and again: exit code %d, %d rows: %s", mode, c.name, n, code, f.rows(t, "People"), stderr)
				}
			}
		}
	}
}

// TestCopyFromFailing copies to a directory, counts and clears on a server that fails at each
// request. Another copy and another clear continue.
func TestCopyFromFailing(t *testing.T) {
	f := newFailing(t)
	for _, c := range failures {
		f.fail.Store(&c.fail)
		for _, command := range []string{"copy", "count", "clear"} {
			if f.rows(t, "People") == 0 {
				if err := f.store.DeleteTable(t.Context(), "People"); err != nil && !errors.Is(err, store.ErrTableNotFound) {
					t.Fatal(err)
				}
				f.fill(t, "People", 1100)
			}
			for n := int64(1); ; n += stride(3) {
				data := filepath.Join(t.TempDir(), "data")
				args := map[string][]string{
					"copy":  {"copy", "--to", data, "--from", f.address, "--account-key", failing.Key},
					"count": {"count", "People", "--endpoint", f.address, "--account-key", failing.Key},
					"clear": {"clear", "People", "--yes", "--endpoint", f.address, "--account-key", failing.Key},
				}[command]
				before := f.rows(t, "People")
				code, stderr, failed := f.run(t, n, args...)
				if !failed {
					if code != exitOK {
						t.Errorf("%s without a failure: exit code %d after %d requests, %s", command, code, n-1, stderr)
					}
					break
				}
				deleted := before - f.rows(t, "People")
				state := fmt.Sprintf("(%s deleted; repeat the command to continue)", quantity.Plural(int64(deleted), "entity"))
				says := strings.Contains(stderr, state) || deleted == 0 && strings.Contains(stderr, c.next)
				if code != c.code || !says || command != "clear" && deleted > 0 || strings.Contains(stderr, "before you repeat it") {
					t.Errorf("%s, %s from request %d on: exit code %d, %d deleted: %s", command, c.name, n, code, deleted, stderr)
				}
				if command != "copy" {
					continue
				}
				if code, stderr, _ := f.run(t, 1<<40, args...); code != exitOK {
					t.Errorf("copy, %s from request %d on, and again: exit code %d: %s", c.name, n, code, stderr)
				}
				var out, messages bytes.Buffer
				if run(t.Context(), []string{"count", "People", "--data", data}, nil, &out, &messages) != exitOK || strings.TrimSpace(out.String()) != `{"entities":1100}` {
					t.Errorf("copy, %s from request %d on, and again: %s rows, %s", c.name, n, &out, &messages)
				}
			}
		}
	}
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
