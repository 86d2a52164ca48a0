package explorer_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// startJob starts a job and returns its id.
func (b *browser) startJob(path string, body object) string {
	b.t.Helper()
	var job struct{ Job string }
	b.want(http.StatusOK, &job, path, body)
	return job.Job
}

// TestManyJobs starts more jobs than are kept. Each removes the one that ended first, and its
// file.
func TestManyJobs(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 1)
	b := s.owner()
	body := object{"account": "first", "table": "Tab", "name": "x.csv"}
	var ids []string
	for range 110 {
		id := b.startJob("export", body)
		if j := b.wait(id); j.State != "done" {
			t.Fatalf("job %d is %+v", len(ids), j)
		}
		s.pass(time.Second)
		ids = append(ids, id)
	}
	for i, id := range ids {
		want := http.StatusOK
		if i < 10 {
			want = http.StatusNotFound
		}
		b.want(want, nil, "job?id="+id, nil)
		if response, _ := b.send(http.MethodGet, "/ui/api/export/file?id="+id, "", "Cookie", b.cookie); response.StatusCode != want {
			t.Errorf("the file of job %d: %s", i, response.Status)
		}
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return // the system does not list the open files
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		open := 0
		links, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, filepath.Join(os.TempDir(), "tablerock-")) {
				open++
			}
		}
		if open == 100 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d files of exports are open", open)
		}
	}
}

// TestRunningJobs refuses jobs only while others run. Sessions of signatures leave half of
// them to the owner.
func TestRunningJobs(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 1)
	sas, err := s.cred.AccountSAS(sharedkey.AccountSAS{
		ResourceTypes: "co", Permissions: "rwau", Expiry: s.time().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, owner := s.login(map[string]string{"account": "first", "sas": sas}), s.owner()
	var ids []string
	for i, b := range []*browser{signed, owner} {
		for range 4 {
			ids = append(ids, b.startJob("import", object{"account": "first", "table": "Tab", "name": "x.jsonl", "size": 10}))
		}
		body := object{"account": "first", "table": "Tab", "name": "x.csv"}
		if status := b.call(nil, "export", body); status != http.StatusTooManyRequests {
			t.Errorf("browser %d starts more jobs: status %d", i, status)
		}
	}
	owner.want(http.StatusOK, nil, "job/cancel", object{"id": ids[7]})
	owner.wait(ids[7])
	owner.wait(owner.startJob("export", object{"account": "first", "table": "Tab", "name": "x.csv"}))
}

// slow is a source whose cursors wait for the end of their ctx before the second row.
type slow struct{ transfer.Querier }

func (s slow) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return &slowCursor{s.Querier.Query(ctx, table, q), ctx, 0}
}

type slowCursor struct {
	store.Cursor
	ctx context.Context
	n   int
}

func (c *slowCursor) Next() bool {
	if c.n++; c.n == 2 {
		<-c.ctx.Done()
	}
	return c.Cursor.Next()
}

// TestJobsOfRevokedAccess requires that jobs end soon after the session may not do their
// action any more.
func TestJobsOfRevokedAccess(t *testing.T) {
	table := sharedkey.TableSAS{Table: "Tab", Permissions: "r"}
	named := sharedkey.TableSAS{Table: "Tab", Identifier: "p"}
	policy := func(permission string) func(*site) {
		return func(s *site) {
			s.change(func(a *explorer.Account) {
				a.Policies = func(context.Context, string) (list []explorer.Policy, _ error) {
					if permission != "" {
						list = []explorer.Policy{{ID: "p", Permission: permission, Expiry: s.time().Add(time.Hour).UTC().Format(time.RFC3339)}}
					}
					return list, nil
				}
			})
		}
	}
	const refused, missing = "AuthenticationFailed", "AuthorizationPermissionMismatch"
	remove, add := func(s *site) { s.remove(true) }, func(s *site) { s.remove(false) }
	for _, c := range []struct {
		name, kind      string
		sas             *sharedkey.TableSAS
		revoke, restore func(*site)
		code            string
	}{
		{"the key of a clear", "clear", nil, remove, add, refused},
		{"the key of an export", "export", nil, remove, add, refused},
		{"the key of an import", "import", nil, remove, add, refused},
		{"an expired signature", "export", &table, func(s *site) { s.pass(2 * time.Hour) }, func(s *site) { s.pass(-2 * time.Hour) }, refused},
		{"a removed policy", "export", &named, policy(""), policy("r"), refused},
		{"a policy without the permission", "export", &named, policy("a"), func(*site) {}, missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.fill("Tab", 1, 10)
			policy("r")(s)
			began, ended := make(chan struct{}), make(chan struct{})
			s.change(func(a *explorer.Account) { slowDown(a, began, ended) })
			login := map[string]string{"account": "first", "key": key}
			if c.sas != nil {
				if c.sas.Identifier == "" {
					c.sas.Expiry = s.time().Add(time.Hour).UTC().Format(time.RFC3339)
				}
				sas, err := s.cred.TableSAS(*c.sas)
				if err != nil {
					t.Fatal(err)
				}
				login = map[string]string{"account": "first", "sas": sas}
			}
			b := s.login(login)
			body, path := object{"account": "first", "table": "Tab", "name": "x.jsonl"}, c.kind
			switch c.kind {
			case "clear":
				body, path = object{"account": "first", "table": "Tab", "typed": "Tab"}, "tables/clear"
			case "import":
				body["size"] = 1000
			}
			id := b.startJob(path, body)
			if c.kind == "import" {
				path := fmt.Sprintf("/ui/api/import/data?id=%s&offset=0", id)
				b.send(http.MethodPost, path, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n", "Cookie", b.cookie, "Origin", b.url, "X-Csrf-Token", b.csrf)
			}
			<-began
			c.revoke(s)
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("the job does not end")
			}
			c.restore(s)
			if j := b.wait(id); j.State != "failed" || j.Failure == nil || j.Failure.Code != c.code {
				t.Errorf("the job is %+v, its failure %+v", j, j.Failure)
			}
		})
	}
}

// slowDown makes the jobs of an account wait for the end of their ctx. They close began
// before and ended after that.
func slowDown(a *explorer.Account, began, ended chan struct{}) {
	snapshot, load := a.Snapshot, a.Load
	a.Snapshot = func() (transfer.Querier, func(), error) {
		close(began)
		q, release, err := snapshot()
		return slow{q}, func() { release(); close(ended) }, err
	}
	a.Load = func(ctx context.Context, table string, list iter.Seq2[edm.Entity, error], installed func(int64)) error {
		close(began)
		defer close(ended)
		return load(ctx, table, list, installed)
	}
	a.Clear = func(ctx context.Context, _ string, _ func(int64)) error {
		close(began)
		defer close(ended)
		<-ctx.Done()
		return ctx.Err()
	}
}

// TestDownloadOfRemovedKey ends the download of a session whose key is removed.
func TestDownloadOfRemovedKey(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 0, 0)
	text := edm.String(strings.Repeat("x", 30<<10))
	for i := range 1000 { // more than the buffers of a connection
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(i)}, Properties: edm.Properties{{Name: "Text", Value: text}}}
		if _, err := s.db.Apply(t.Context(), "Tab", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	b := s.login(map[string]string{"account": "first", "key": key})
	id := b.startJob("export", object{"account": "first", "table": "Tab", "name": "x.jsonl"})
	j := b.wait(id)
	response := b.stream(t.Context(), "export/file?id="+id)
	s.remove(true)
	s.pass(2 * time.Second)
	if n, err := io.Copy(io.Discard, response.Body); err == nil || response.StatusCode != http.StatusOK || n >= j.Size {
		t.Errorf("the download is %s, %d of %d bytes, %v", response.Status, n, j.Size, err)
	}
}
