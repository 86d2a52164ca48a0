package ui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/ui"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
)

// failure is the answer of the pages to what failed.
type failure struct{ Code, Message string }

// exploring is a browser that is logged in at the pages of a server.
type exploring struct {
	t        *testing.T
	at, csrf string
	cookie   *http.Cookie
}

// explore serves the pages of the server at address until the test ends, and logs in.
func explore(t *testing.T, address string) *exploring {
	t.Helper()
	flags := where.Flags{AccountKey: "a2V5"}
	no := func(string) bool { return false }
	list, err := flags.Parse(where.Command{Typed: no, Set: no}, address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	e := ui.Explore{Listen: "127.0.0.1:0", PrintLink: true, NoBrowser: true, Version: "test", Stdout: in, Stderr: io.Discard}
	go func() {
		err := e.Run(ctx, list[0].Server, "", func(string, ...any) {})
		_ = in.CloseWithError(io.EOF) // never fails
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("explore ends with %v", err)
		}
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at, token, _ := strings.Cut(strings.TrimSpace(link), "login#once=")
	x := &exploring{t: t, at: at}
	var session struct{ CSRF string }
	x.cookie = x.send(http.StatusOK, &session, "api/login", map[string]any{"once": token}).Cookies()[0]
	x.csrf = session.CSRF
	return x
}

// send sends a request, with a body for POST, and requires a status.
func (x *exploring) send(status int, out any, path string, body any) *http.Response {
	x.t.Helper()
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		text, _ = json.Marshal(body) // the bodies of the tests have JSON
	}
	q, err := http.NewRequestWithContext(x.t.Context(), method, x.at+path, bytes.NewReader(text))
	if err != nil {
		x.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Origin", strings.TrimSuffix(x.at, "/ui/"))
	q.Header.Set("X-Csrf-Token", x.csrf)
	if x.cookie != nil {
		q.AddCookie(x.cookie)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		x.t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status || json.Unmarshal(got, out) != nil {
		x.t.Errorf("%s: %s, %s, error %v; want %d", path, response.Status, got, err, status)
	}
	return response
}

// TestServerRefuses shows a server that refuses or fails: the pages and their jobs say what it
// answers, and go on with their session.
func TestServerRefuses(t *testing.T) {
	var answer atomic.Pointer[func(http.ResponseWriter)]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		(*answer.Load())(w)
	}))
	t.Cleanup(srv.Close)
	x := explore(t, srv.URL+"/shop")
	with := func(status int, code, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("x-ms-error-code", code)
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for _, c := range []struct {
		name              string
		answer            func(http.ResponseWriter)
		read, write       int
		readHas, writeHas string
	}{
		{"403", with(403, "AuthorizationPermissionMismatch", ""), 403, 403, "the server answers 403 AuthorizationPermissionMismatch", "the server answers 403"},
		{"401", with(401, "NoAuthenticationInformation", ""), 403, 403, "the server answers 401 NoAuthenticationInformation", "the server answers 401"},
		{"500", with(500, "InternalError", ""), 502, 500, "the server answers 500 InternalError", "not known"},
		{"busy", with(503, "ServerBusy", ""), 503, 503, "the server answers 503 ServerBusy", "the server answers 503 ServerBusy"},
		{"HTML", with(200, "", "<html>hello</html>"), 502, 500, "no Table server", "not known"},
		{"404", with(404, "", "<html>no such page</html>"), 502, 502, "the server answers 404", "the server answers 404"},
	} {
		answer.Store(&c.answer)
		var read, write failure
		x.send(c.read, &read, "api/tables?a=shop", nil)
		x.send(c.write, &write, "api/tables/create", map[string]any{"account": "shop", "table": "People"})
		if !strings.Contains(read.Message, c.readHas) || !strings.Contains(write.Message, c.writeHas) || read.Code == "" || write.Code == "" {
			t.Errorf("%s: a read %+v, a write %+v", c.name, read, write)
		}
		var started struct{ Job string }
		x.send(http.StatusOK, &started, "api/export", map[string]any{"account": "shop", "table": "People", "name": "x.csv"})
		var job struct {
			State   string
			Failure failure
		}
		deadline := time.After(time.Minute)
		for job.State == "" || job.State == "running" {
			select {
			case <-deadline:
				t.Fatal("the export does not end")
			case <-time.After(time.Millisecond):
				x.send(http.StatusOK, &job, "api/job?id="+started.Job, nil)
			}
		}
		if job.State != "failed" || !strings.Contains(job.Failure.Message, c.readHas) {
			t.Errorf("%s: an export is %+v", c.name, job)
		}
	}
	srv.Close()
	var read failure
	if x.send(http.StatusServiceUnavailable, &read, "api/tables?a=shop", nil); !strings.Contains(read.Message, "connection refused") {
		t.Errorf("a server that does not run: %+v", read)
	}
}
