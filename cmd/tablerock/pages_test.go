package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// pages is a browser that is logged in to the pages of a program.
type pages struct {
	t       *testing.T
	at      string // the URL of the pages
	cookies []*http.Cookie
	csrf    string
}

// openPages logs in by a link.
func openPages(t *testing.T, link string) *pages {
	t.Helper()
	at, token, found := strings.Cut(strings.TrimSpace(link), "login#once=")
	if !found || !strings.HasSuffix(at, explorer.Root) {
		t.Fatalf("the link is %q", link)
	}
	p := &pages{t: t, at: at}
	var session explorer.Session
	p.call("login", map[string]string{"once": token}, &session)
	p.csrf = session.CSRF
	return p
}

// call sends a request of the API, with a body for POST, and sets out.
func (p *pages) call(path string, body, out any) {
	p.t.Helper()
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		method = http.MethodPost
		if text, err = json.Marshal(body); err != nil {
			p.t.Fatal(err)
		}
	}
	p.send(method, path, text, out)
}

func (p *pages) send(method, path string, body []byte, out any) {
	p.t.Helper()
	q, err := http.NewRequestWithContext(p.t.Context(), method, p.at+"api/"+path, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Origin", strings.TrimSuffix(p.at, explorer.Root))
	q.Header.Set("X-Csrf-Token", p.csrf)
	for _, c := range p.cookies {
		q.AddCookie(c)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	ended := response.StatusCode == http.StatusConflict && strings.Contains(string(text), `"NotRunning"`) // an import that failed
	if response.StatusCode != http.StatusOK && !ended {
		p.t.Fatalf("%s: %s: %s", path, response.Status, text)
	}
	p.cookies = append(p.cookies, response.Cookies()...)
	if out != nil && !ended {
		if err := json.Unmarshal(text, out); err != nil {
			p.t.Fatalf("%s: %v: %s", path, err, text)
		}
	}
}

// importFile imports a file and returns the job at its end.
func (p *pages) importFile(account, table, name string, data []byte) explorer.Job {
	p.t.Helper()
	var begun struct{ Job string }
	p.call("import", map[string]any{"account": account, "table": table, "name": name, "size": len(data)}, &begun)
	const chunk = 1 << 20
	for at := 0; at < len(data); at += chunk {
		p.send(http.MethodPost, fmt.Sprintf("import/data?id=%s&offset=%d", begun.Job, at), data[at:min(at+chunk, len(data))], nil)
	}
	deadline := time.After(time.Minute)
	for tick := time.Tick(2 * time.Millisecond); ; {
		var job explorer.Job
		if p.call("job?id="+begun.Job, nil, &job); job.State != "running" && job.State != "waiting" {
			return job
		}
		select {
		case <-tick:
		case <-deadline:
			p.t.Fatalf("the import of %s is %+v after a minute", name, job)
		}
	}
}

// begin runs a command line until the test ends, when it must exit with 0, and returns the
// first line of its standard output.
func begin(t *testing.T, stderr io.Writer, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, args, nil, in, stderr)
		_ = in.Close() // never fails
		ended <- code
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("%q exits with %d", args, code)
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%q printed %q: %v", args, line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // it ends with the command
	return line
}

// explore runs "tablerock explore" until the test ends, and returns its pages.
func explore(t *testing.T, args ...string) *pages {
	t.Helper()
	return openPages(t, begin(t, t.Output(), append([]string{"explore", "--print-link", "--no-browser"}, args...)...))
}

// serveDirectory runs "tablerock serve" until the test ends, and returns its ready file.
func serveDirectory(t *testing.T, data string, stderr io.Writer, args ...string) (ready struct {
	URL, Admin string
	Connection string `json:"connection_string"`
},
) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ready.json")
	begin(t, stderr, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ready-file", name}, args...)...)
	deadline := time.After(time.Minute)
	for tick := time.Tick(2 * time.Millisecond); ; {
		if text, err := os.ReadFile(name); err == nil {
			if err := json.Unmarshal(text, &ready); err != nil {
				t.Fatal(err)
			}
			return ready
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatal("the server is not ready after a minute")
		}
	}
}

// TestExploreServer opens the pages of "tablerock explore" over a server, which is given by
// its URL, its connection string, or a signature: they show its entities, import into it, and
// say what the server cannot.
func TestExploreServer(t *testing.T) {
	data := t.TempDir()
	rows := `{"PartitionKey":"p","RowKey":"1","N":1}` + "\n" + `{"PartitionKey":"p","RowKey":"2","N":2}` + "\n"
	if code := run(t.Context(), []string{"import", "Rows", "-", "--data", data, "-q"}, strings.NewReader(rows), os.Stdout, os.Stderr); code != exitOK {
		t.Fatalf("import exits with %d", code)
	}
	ready := serveDirectory(t, data, io.Discard)
	signer, err := sharedkey.NewCredential("devstoreaccount1", developmentKey)
	if err != nil {
		t.Fatal(err)
	}
	expiry := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	sas, err := signer.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "sco", Permissions: "rwdlacu", Expiry: expiry})
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"the URL as argument":               {ready.URL},
		"the connection string as argument": {ready.Connection},
		"--endpoint and a key":              {"--endpoint", ready.URL, "--account-key", developmentKey},
		"--connection-string":               {"--connection-string", ready.Connection},
		"a URL with a signature":            {ready.URL + "?" + sas},
	} {
		t.Run(name, func(t *testing.T) {
			p := explore(t, args...)
			if strings.HasPrefix(p.at, ready.Admin) {
				t.Fatalf("the pages are those of the server: %s", p.at)
			}
			var accounts struct{ Accounts []explorer.AccountInfo }
			p.call("accounts", nil, &accounts)
			if len(accounts.Accounts) != 1 || accounts.Accounts[0].Name != "devstoreaccount1" || accounts.Accounts[0].Where != ready.URL {
				t.Fatalf("the accounts are %+v, want that of %s", accounts.Accounts, ready.URL)
			}
			var page explorer.EntityPage
			p.call("entities?a=devstoreaccount1&t=Rows&filter=N+gt+1", nil, &page)
			if len(page.Rows) != 1 {
				t.Errorf("the page is %+v, want one row", page)
			}
			if job := p.importFile("devstoreaccount1", "More", "rows.jsonl", []byte(rows)); job.State != "done" || job.Rows != 2 {
				t.Errorf("the import is %+v", job)
			}
			var live explorer.Live
			if p.call("live", nil, &live); len(live.Engines) != 0 {
				t.Errorf("the pages over a server have %d engines", len(live.Engines))
			}
			var count struct{ Count int }
			if p.call("count?a=devstoreaccount1&t=More", nil, &count); count.Count != 2 {
				t.Errorf("after the import the server has %d entities, want 2", count.Count)
			}
		})
	}
}

// TestExplorePostgres opens the pages of "tablerock explore" over a database of PostgreSQL: they
// import into it, count and show entities.
func TestExplorePostgres(t *testing.T) {
	address := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(t.Context(), address, &postgres.Options{AllowAsync: true}); err != nil {
		t.Fatal(err)
	}
	p := explore(t, "--backend", address, "--account", "shop", "--allow-async")
	rows := `{"PartitionKey":"p","RowKey":"1"}` + "\n"
	if job := p.importFile("shop", "Rows", "rows.jsonl", []byte(rows)); job.State != "done" || job.Rows != 1 {
		t.Errorf("the import is %+v %+v", job, job.Failure)
	}
	var count struct{ Count int }
	if p.call("count?a=shop&t=Rows", nil, &count); count.Count != 1 {
		t.Errorf("the table has %d entities, want 1", count.Count)
	}
	var page explorer.EntityPage
	if p.call("entities?a=shop&t=Rows", nil, &page); len(page.Rows) != 1 || page.Examined != 1 {
		t.Errorf("the page is %+v", page)
	}
	var accounts struct{ Accounts []explorer.AccountInfo }
	p.call("accounts", nil, &accounts)
	if len(accounts.Accounts) != 1 || !strings.HasPrefix(accounts.Accounts[0].Where, "postgres://") || accounts.Accounts[0].Engine {
		t.Errorf("the accounts are %+v", accounts.Accounts)
	}
}
