package remote_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/failing"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
)

// reply is a response of the server.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// fault changes how a request is answered. With before, the server does not get the request.
type fault struct {
	name   string
	before bool
	answer func(w http.ResponseWriter, r *reply)
}

var faults = []fault{
	{"cut before", true, func(http.ResponseWriter, *reply) { panic(http.ErrAbortHandler) }},
	{"cut after", false, func(http.ResponseWriter, *reply) { panic(http.ErrAbortHandler) }},
	{"busy", true, func(w http.ResponseWriter, _ *reply) { busy(w, "0") }},
	{"throttled", true, func(w http.ResponseWriter, _ *reply) { w.WriteHeader(http.StatusTooManyRequests) }},
	{"408 before", true, failed(408)},
	{"408 after", false, failed(408)},
	{"500 before", true, failed(500)},
	{"500 after", false, failed(500)},
	{"502 after", false, failed(502)},
	{"503 after", false, failed(503)},
	{"504 after", false, failed(504)},
	{"404 before", true, failed(404)},
	{"302 before", true, failed(302)},
	{"cut in body", false, func(w http.ResponseWriter, r *reply) {
		r.send(w, r.body[:len(r.body)/2], len(r.body)+1)
		panic(http.ErrAbortHandler)
	}},
	{"half of the body", false, func(w http.ResponseWriter, r *reply) { r.send(w, r.body[:len(r.body)/2], len(r.body)/2) }},
	{"all but the end", false, func(w http.ResponseWriter, r *reply) {
		n := max(0, len(r.body)-len("\r\n--changesetresponse_00000000-0000-0000-0000-000000000000--"))
		r.send(w, r.body[:n], n)
	}},
	{"no body", false, func(w http.ResponseWriter, r *reply) { r.send(w, nil, 0) }},
	{"gzip", false, func(w http.ResponseWriter, r *reply) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(r.body)
		_ = z.Close()
		r.header.Set("Content-Encoding", "gzip")
		r.send(w, b.Bytes(), b.Len())
	}},
	{"HTML", true, func(w http.ResponseWriter, _ *reply) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>hi</html>")
	}},
	{"other JSON", true, func(w http.ResponseWriter, _ *reply) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	}},
	{"no content", true, func(w http.ResponseWriter, _ *reply) { w.WriteHeader(http.StatusNoContent) }},
}

func failed(status int) func(http.ResponseWriter, *reply) {
	return func(w http.ResponseWriter, _ *reply) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>failed</html>")
	}
}

// send sends the response with a part of its body, which has n bytes by the header.
func (r *reply) send(w http.ResponseWriter, body []byte, n int) {
	maps.Copy(w.Header(), r.header)
	w.Header().Del("Content-Length")
	if r.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(n))
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(body)
}

// sweep is a server whose answers are changed by a plan, and a store of it.
type sweep struct {
	through store.Store
	direct  store.Store
	plan    atomic.Pointer[func(n int) string] // the name of the fault for the n-th request, "" for none
	n       atomic.Int64
	address string
}

func newSweep(t *testing.T) *sweep {
	t.Helper()
	s := &sweep{}
	address, db := failing.NewServer(t, func(w http.ResponseWriter, r *http.Request, right http.Handler) {
		name := (*s.plan.Load())(int(s.n.Add(1)))
		i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
		if i >= 0 && faults[i].before {
			_, _ = io.Copy(io.Discard, r.Body)
			faults[i].answer(w, nil)
			return
		}
		of := httptest.NewRecorder()
		right.ServeHTTP(of, r)
		rep := &reply{of.Code, of.Header(), of.Body.Bytes()}
		switch {
		case name == "no answer":
			<-r.Context().Done()
		case name == "no rest":
			rep.send(w, rep.body[:len(rep.body)/2], len(rep.body))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case i < 0:
			rep.send(w, rep.body, len(rep.body))
		default:
			faults[i].answer(w, rep)
		}
	})
	s.address, s.direct, s.through = address, db, open(t, address, failing.Key)
	return s
}

// state returns the names of the tables and the ETags of the entities in People.
func (s *sweep) state(t *testing.T) string {
	t.Helper()
	list, err := s.direct.Tables(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(len(list))
	for e, err := range store.Entities(s.direct.Query(t.Context(), "People", store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) {
			return text + " without People"
		} else if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprint(" ", e.Key, e.Timestamp)
	}
	return text
}

// TestWriteSweep sends each kind of write to a server that fails in each way: at the first
// request, after a refusal as busy, and always. A success is one, a refusal had no effect, and
// else the outcome is unknown.
func TestWriteSweep(t *testing.T) {
	s := newSweep(t)
	ctx := t.Context()
	apply := func(ops ...store.Op) func() error {
		return func() error {
			_, err := s.through.Apply(ctx, "People", ops...)
			return err
		}
	}
	remove := store.Delete(entity("1", 1).Key, store.Any)
	writes := []struct {
		name string
		call func() error
		bare bool // the answer has no more than the status 204
	}{
		{"insert", apply(store.Insert(entity("2", 1))), false},
		{"merge", apply(store.Merge(entity("1", 2), store.Any)), false},
		{"upsert", apply(store.InsertOrReplace(entity("2", 1))), false},
		{"delete", apply(remove), true},
		{"batch", apply(remove, store.Insert(entity("2", 1)), store.InsertOrMerge(entity("3", 1))), false},
		{"create table", func() error { return s.through.CreateTable(ctx, "Other") }, true},
		{"delete table", func() error { return s.through.DeleteTable(ctx, "People") }, true},
	}
	for _, f := range faults {
		for name, plan := range map[string]func(n int) string{
			"first":      func(n int) string { return []string{f.name, ""}[min(n, 2)-1] },
			"after busy": func(n int) string { return []string{"busy", f.name, ""}[min(n, 3)-1] },
			"always":     func(int) string { return f.name },
		} {
			for _, w := range writes {
				if f.name == "no content" && w.bare {
					continue
				}
				for _, table := range []string{"People", "Other"} {
					if err := s.direct.DeleteTable(ctx, table); err != nil && !errors.Is(err, store.ErrTableNotFound) {
						t.Fatal(err)
					}
				}
				err := s.direct.CreateTable(ctx, "People")
				if err == nil {
					_, err = s.direct.Apply(ctx, "People", store.Insert(entity("1", 1)))
				}
				if err != nil {
					t.Fatal(err)
				}
				before := s.state(t)
				s.plan.Store(&plan)
				s.n.Store(0)
				err = w.call()
				changed := s.state(t) != before
				unknown, unavailable := errors.Is(err, store.ErrOutcomeUnknown), errors.Is(err, store.ErrUnavailable)
				refused := errors.Is(err, store.ErrEntityExists) || errors.Is(err, store.ErrEntityNotFound) || errors.Is(err, store.ErrTableExists) ||
					errors.Is(err, store.ErrTableNotFound) || errors.Is(err, store.ErrPrecondition)
				if (err == nil) && !changed || err != nil && !unknown && changed || unknown && unavailable || refused {
					t.Errorf("%s, %s %s: executed %t, error %v", w.name, f.name, name, changed, err)
				}
			}
		}
	}
}

const sweepRows = 2100

// fill creates the table People with sweepRows entities.
func fill(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < sweepRows; i += 100 {
		ops := make([]store.Op, 100)
		for j := range ops {
			ops[j] = store.Insert(entity(fmt.Sprintf("%05d", i+j), int32(i+j)))
		}
		if _, err := s.Apply(t.Context(), "People", ops...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadSweep reads 2,100 entities, a list of tables and an entity from a server that fails in
// each way at each page, once and from there on. All rows come once, if a query that was ended by
// an error is continued.
func TestReadSweep(t *testing.T) {
	s := newSweep(t)
	ctx := t.Context()
	fill(t, s.direct)
	check := func(what string, err error) {
		t.Helper()
		if errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrTableNotFound) || errors.Is(err, store.ErrEntityNotFound) ||
			err != nil && !errors.As(err, new(*remote.Error)) && !strings.Contains(err.Error(), s.address) {
			t.Errorf("%s: %v", what, err)
		}
	}
	pages := []int{1, 2, 3}
	if testing.Short() {
		pages = pages[1:2]
	}
	for _, f := range faults {
		for _, page := range pages {
			for _, always := range []bool{false, true} {
				what := fmt.Sprintf("%s at page %d, always %t", f.name, page, always)
				plan := func(n int) string {
					if n == page || always && n > page {
						return f.name
					}
					return ""
				}
				s.plan.Store(&plan)
				s.n.Store(0)
				var from *edm.Key
				n, failures := 0, 0
				for {
					c := s.through.Query(ctx, "People", store.Query{From: from})
					for ; c.Next(); n++ {
						if got, want := c.Row().Key().Row, fmt.Sprintf("%05d", n); got != want {
							t.Fatalf("%s: row %s instead of %s", what, got, want)
						}
					}
					from = c.Resume()
					if c.Err() == nil {
						break
					}
					check(what, c.Err())
					if failures++; failures > 1 || from == nil {
						none := func(int) string { return "" }
						s.plan.Store(&none)
					}
					if failures > 3 {
						t.Fatalf("%s: the query fails without a fault: %v", what, c.Err())
					}
					if from == nil {
						from = &edm.Key{Partition: "p", Row: fmt.Sprintf("%05d", n)} // after a refusal
					}
				}
				if n != sweepRows {
					t.Errorf("%s: %d rows, want %d", what, n, sweepRows)
				}
			}
		}
		for _, plan := range []func(n int) string{func(n int) string { return []string{f.name, ""}[min(n, 2)-1] }, func(int) string { return f.name }} {
			s.plan.Store(&plan)
			s.n.Store(0)
			list, err := s.through.Tables(ctx, "", 0)
			check("Tables, "+f.name, err)
			if err == nil && len(list) != 1 {
				t.Errorf("Tables, %s: %d tables without an error", f.name, len(list))
			}
			s.n.Store(0)
			e, err := s.through.Get(ctx, "People", edm.Key{Partition: "p", Row: "00007"})
			check("Get, "+f.name, err)
			if err == nil && e.Key.Row != "00007" {
				t.Errorf("Get, %s: %v without an error", f.name, e)
			}
		}
	}
}

// TestContextEndsInRead ends the ctx of a query while the server has not answered a page, or is
// within it. The query ends, and the rest of the rows comes when it is continued.
func TestContextEndsInRead(t *testing.T) {
	s := newSweep(t)
	fill(t, s.direct)
	for _, name := range []string{"no answer", "no rest"} {
		for page := 1; page <= 3; page++ {
			ctx, cancel := context.WithCancel(t.Context())
			plan := func(n int) string {
				if n != page {
					return ""
				}
				time.AfterFunc(50*time.Millisecond, cancel)
				return name
			}
			s.plan.Store(&plan)
			s.n.Store(0)
			c, n := s.through.Query(ctx, "People", store.Query{}), 0
			for c.Next() {
				n++
			}
			from := c.Resume()
			if c.Err() != context.Canceled || from == nil {
				t.Fatalf("%s at page %d: error %v after %d rows", name, page, c.Err(), n)
			}
			for c = s.through.Query(t.Context(), "People", store.Query{From: from}); c.Next(); n++ {
				if got, want := c.Row().Key().Row, fmt.Sprintf("%05d", n); got != want {
					t.Fatalf("%s at page %d: row %s instead of %s", name, page, got, want)
				}
			}
			if n != sweepRows || c.Err() != nil {
				t.Errorf("%s at page %d: %d rows, error %v; want %d", name, page, n, c.Err(), sweepRows)
			}
		}
	}
}
