package explorer_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/failing"
	"github.com/tablerock-db/tablerock/store"
)

// failingStore returns the store of a site of which one call fails or, if err is nil, closes began
// and waits for the end of ctx.
func (s *site) failingStore(at int64, after bool, err error) (f *failing.Store, began chan struct{}) {
	began = make(chan struct{})
	return &failing.Store{Store: s.db, At: at, After: after, Err: err, Wait: func() { close(began) }}, began
}

// rowsOf returns the number of entities of a table, 0 if it is missing.
func (s *site) rowsOf(table string) (n int64) {
	s.t.Helper()
	for _, err := range store.Entities(s.db.Query(s.t.Context(), table, store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) {
			return 0
		} else if err != nil {
			s.t.Fatal(err)
		}
		n++
	}
	return n
}

// TestImportFails imports files to a store that fails, or waits until the job is canceled, at each
// of its calls. The job counts what is stored, and another import continues it.
func TestImportFails(t *testing.T) {
	const rows = 450
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "{\"PartitionKey\":\"p%d\",\"RowKey\":\"%04d\",\"N\":1}\n", i/150, i)
	}
	s := newSite(t)
	b := s.owner()
	tables, stride := 0, int64(1)
	if testing.Short() {
		stride = 3
	}
	for _, c := range []struct {
		name   string
		err    error
		after  bool
		insert bool
		code   string
	}{
		{"unavailable", store.ErrUnavailable, false, false, "ServerBusy"},
		{"unavailable, insert", store.ErrUnavailable, false, true, "ServerBusy"},
		{"outcome unknown", store.ErrOutcomeUnknown, true, false, "OperationTimedOut"},
		{"outcome unknown, insert", store.ErrOutcomeUnknown, true, true, "OperationTimedOut"},
		{"canceled", nil, false, false, ""},
		{"canceled, insert", nil, false, true, ""},
		{"canceled in a write", nil, true, true, ""},
	} {
		for at := int64(1); ; at += stride {
			what := fmt.Sprintf("%s at call %d", c.name, at)
			tables++
			table := fmt.Sprint("New", tables)
			more, before := object{"mode": "replace"}, int64(0)
			if c.insert {
				more = object{"mode": "insert", "skipBad": true}
				if err := s.db.CreateTable(t.Context(), table); err != nil {
					t.Fatal(err)
				}
				for _, row := range []string{"0003", "0007"} {
					if _, err := s.db.Apply(t.Context(), table, store.Insert(edm.Entity{Key: edm.Key{Partition: "p0", Row: row}})); err != nil {
						t.Fatal(err)
					}
					before++
				}
			}
			f, began := s.failingStore(at, c.after, c.err)
			s.change(func(a *explorer.Account) { a.Store, a.Load = f, nil })
			var j explorer.Job
			if c.err == nil {
				j = b.cancelAt(began, table, text.String(), more)
			} else {
				j = b.upload(table, "x.jsonl", text.String(), text.Len(), more)
			}
			stored := s.rowsOf(table)
			if !f.Failed() {
				if j.State != "done" || stored != rows {
					t.Errorf("%s, which does not come: %+v, %d rows", what, j, stored)
				}
				if at < 8 {
					t.Errorf("%s: only %d calls", c.name, at-1)
				}
				break
			}
			switch {
			case c.err == nil && j.State != "canceled", c.err != nil && (j.State != "failed" || j.Failure == nil || j.Failure.Code != c.code):
				t.Errorf("%s: %+v %+v", what, j, j.Failure)
			case !c.after && j.Rows != stored-before, j.Rows > stored-before:
				t.Errorf("%s: %d rows of the job, %d stored", what, j.Rows, stored-before)
			}
			s.change(func(a *explorer.Account) { a.Store = s.db })
			j = b.upload(table, "x.jsonl", text.String(), text.Len(), more)
			if j.State != "done" || j.Rows+j.Skipped != rows || s.rowsOf(table) != rows {
				t.Errorf("%s, and again: %+v, %d rows", what, j, s.rowsOf(table))
			}
		}
	}
}

// cancelAt imports a file to a store that closes began when it waits, and then cancels the job.
func (b *browser) cancelAt(began <-chan struct{}, table, text string, more object) explorer.Job {
	b.t.Helper()
	body := object{"account": "first", "table": table, "name": "x.jsonl", "size": len(text)}
	for name, v := range more {
		body[name] = v
	}
	id := b.startJob("import", body)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/ui/api/import/data?id=%s&offset=0", b.url, id), strings.NewReader(text))
		if err != nil {
			b.t.Error(err)
			return
		}
		for name, v := range map[string]string{"Cookie": b.cookie, "Origin": b.url, "X-Csrf-Token": b.csrf} {
			r.Header.Set(name, v)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			b.t.Error(err)
			return
		}
		response.Body.Close()
	}()
	ended := make(chan struct{})
	var j explorer.Job
	go func() {
		defer close(ended)
		j = b.wait(id)
	}()
	select {
	case <-began:
		b.want(http.StatusOK, nil, "job/cancel", object{"id": id})
	case <-ended:
	case <-time.After(time.Minute):
		b.t.Error("the import does not end")
	}
	<-ended
	<-sent
	return j
}

// temporaryFiles returns the number of open temporary files, 0 if the system does not list them.
func temporaryFiles(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, filepath.Join(os.TempDir(), "tablerock-")) {
			n++
		}
	}
	return n
}

// TestExportFails exports a table of a store that fails at some of its calls. There is no file, and
// another export is complete.
func TestExportFails(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 20, 50)
	b := s.owner()
	for _, name := range []string{"x.csv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz", "x.jsonl.zst"} {
		for _, err := range []error{store.ErrUnavailable, nil} {
			for _, at := range []int64{1, 2, 700, 1000, 1001, 1002, 1003, 2001, 2002, 3000} {
				f, began := s.failingStore(at, false, err)
				s.change(func(a *explorer.Account) { a.Store, a.Snapshot = f, nil })
				before := temporaryFiles(t)
				id := b.startJob("export", object{"account": "first", "table": "Tab", "name": name})
				ended := make(chan explorer.Job, 1)
				go func() { ended <- b.wait(id) }()
				var j explorer.Job
				select {
				case <-began:
					b.want(http.StatusOK, nil, "job/cancel", object{"id": id})
					j = <-ended
				case j = <-ended:
				}
				switch {
				case !f.Failed():
					if j.State != "done" || j.Rows != 1000 {
						t.Errorf("%s without a failure: %+v", name, j)
					}
					continue
				case err != nil && (j.State != "failed" || j.Failure == nil || j.Failure.Code != "ServerBusy"), err == nil && j.State != "canceled", j.Rows > 1000:
					t.Errorf("%s fails at call %d: %+v %+v", name, at, j, j.Failure)
				}
				if response, text := b.send(http.MethodGet, "/ui/api/export/file?id="+id, "", "Cookie", b.cookie); response.StatusCode != http.StatusConflict {
					t.Errorf("the file of %s, which failed at call %d: %s, %d bytes", name, at, response.Status, len(text))
				}
				if now := temporaryFiles(t); now > before {
					t.Errorf("%s, which failed at call %d: %d temporary files are open, %d before", name, at, now, before)
				}
			}
		}
	}
}
