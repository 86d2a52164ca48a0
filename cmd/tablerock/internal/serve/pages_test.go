package serve

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/health"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/selfsigned"
	"github.com/tablerock-db/tablerock/internal/explorer"
)

// pagesOf logs in to the pages of a server by a link.
func pagesOf(t *testing.T, r *running) func(path string, body, out any) {
	t.Helper()
	link, err := local.Link(t.Context(), filepath.Join(r.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	at, token, _ := strings.Cut(link, "login#once=")
	call := logIn(t, r, at, map[string]string{"once": token})
	if strings.Contains(r.stderr.String()+r.stdout.String(), token) {
		t.Error("the output has the token of the link")
	}
	return call
}

// logIn logs in to the pages at a URL and returns a function that calls their API.
func logIn(t *testing.T, r *running, at string, login map[string]string) func(path string, body, out any) {
	t.Helper()
	origin := strings.TrimSuffix(at, explorer.Root)
	var session explorer.Session
	var cookies []*http.Cookie
	call := func(path string, body, out any) {
		t.Helper()
		method, text := http.MethodGet, []byte(nil)
		var err error
		if body != nil {
			method = http.MethodPost
			if text, err = json.Marshal(body); err != nil {
				t.Fatal(err)
			}
		}
		q, err := http.NewRequestWithContext(t.Context(), method, at+"api/"+path, strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Origin", origin)
		q.Header.Set("X-Csrf-Token", session.CSRF)
		for _, c := range cookies {
			q.AddCookie(c)
		}
		answer, err := r.client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, answer.Status)
		}
		cookies = append(cookies, answer.Cookies()...)
		if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	call("login", login, &session)
	return call
}

// TestPages compares the live state of the pages with the requests that were sent and with
// the figures of the metrics, and sets access policies.
func TestPages(t *testing.T) {
	r := start(t, "--segment-size", "64KiB", "--access-log", "--log-format", "json")
	if want := "explorer          " + r.admin + "/ui/\n"; !strings.Contains(r.stdout.String(), want) {
		t.Errorf("the banner has no %q: %s", want, r.stdout)
	}
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`)
	value := strings.Repeat("x", 8<<10)
	for i := range 64 {
		r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Orders", fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%04d","V":"%s%d"}`, i, value, i))
	}
	r.want(t, http.StatusNotFound, http.MethodGet, r.url+"/Orders(PartitionKey='p',RowKey='none')", "")
	call := pagesOf(t, r)
	live := atRest(t, call)
	e := live.Engines[0]
	var inLog int64
	for _, s := range e.Segments {
		inLog += s.Bytes
	}
	if float64(inLog) != e.Figures["WALBytes"].(float64) || len(e.Memtables) != len(e.Segments) {
		t.Errorf("the segments have %d bytes: %+v %v", inLog, e.Segments, e.Figures)
	}
	if live.Requests.Count != 66 || live.Requests.Writes != 65 || live.Requests.Failures != 1 || live.Requests.Latency.Count != 66 {
		t.Errorf("the requests are %+v", live.Requests)
	}
	if last := live.Last[0]; last.Operation != "GetEntity" || last.Status != http.StatusNotFound || last.Table != "Orders" {
		t.Errorf("the last request is %+v", last)
	}
	policy := explorer.Policy{ID: "readers", Expiry: "2030-01-02T03:04:05Z", Permission: "r"}
	call("acl", map[string]any{"account": "devstoreaccount1", "table": "Orders", "policies": []explorer.Policy{policy}}, &struct{}{})
	var acl struct{ Policies []explorer.Policy }
	call("acl?a=devstoreaccount1&t=Orders", nil, &acl)
	if len(acl.Policies) != 1 || acl.Policies[0] != policy {
		t.Errorf("the policies are %+v", acl)
	}
	if strings.Contains(r.stderr.String(), developmentKey) {
		t.Error("the log has the key")
	}
}

// atRest returns the live state after a flush, when the files that it has are those of the figures:
// they are read one after the other, and jobs change them.
func atRest(t *testing.T, call func(path string, body, out any)) (live explorer.Live) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.Tick(10 * time.Millisecond); ; {
		live = explorer.Live{}
		call("live", nil, &live)
		e := live.Engines[0]
		var bytes int64
		sstables := 0
		for _, tier := range e.Tiers {
			for _, run := range tier.Runs {
				bytes, sstables = bytes+run.Bytes, sstables+run.SSTables
			}
		}
		if float64(sstables) == e.Figures["SSTables"].(float64) && e.Figures["Flushes"].(float64) > 0 && len(e.Jobs) > 0 && bytes > 0 {
			return live
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%d sstables of %d bytes, jobs %+v, figures %v", sstables, bytes, e.Jobs, e.Figures)
		}
	}
}

// TestPagesOff requires that no pages are served if they are off.
func TestPagesOff(t *testing.T) {
	r := start(t, "--ui", "off")
	r.want(t, http.StatusNotFound, http.MethodGet, r.admin+"/ui/", "")
	if link, err := local.Link(t.Context(), filepath.Join(r.dir, "data")); err == nil {
		t.Errorf("there is the link %s", link)
	}
}

// statusAtHost returns the status of the page of the login for a Host.
func (r *running) statusAtHost(t *testing.T, host string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.admin+explorer.Root+"login", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = host
	answer, err := r.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// TestPagesForOthers serves pages on an address that other machines can reach: with a
// certificate, or if that is asked for, and not otherwise.
func TestPagesForOthers(t *testing.T) {
	const own = "mine:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
	r := start(t, "--admin", "0.0.0.0:0", "--account", own)
	r.want(t, http.StatusNotFound, http.MethodGet, r.admin+"/ui/", "")
	if !strings.Contains(r.stderr.String(), "--ui-insecure") {
		t.Errorf("the output does not say why there are no pages: %s", r.stderr)
	}
	r = start(t, "--admin", "0.0.0.0:0", "--account", own, "--ui-insecure")
	r.want(t, http.StatusOK, http.MethodGet, r.admin+"/ui/", "")

	cert, key, err := selfsigned.New("*.example.com")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"cert": cert, "key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = start(t, "--admin", "0.0.0.0:0", "--account", own, "--cert", filepath.Join(dir, "cert"), "--key", filepath.Join(dir, "key"))
	if !strings.HasPrefix(r.admin, "https://") {
		t.Fatalf("the admin listener is at %s", r.admin)
	}
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for host, want := range map[string]int{
		"db.example.com": http.StatusOK, "DB.example.com.:443": http.StatusOK, "localhost": http.StatusOK,
		"a.db.example.com": http.StatusForbidden, "example.com": http.StatusForbidden,
		"new.example.org": http.StatusForbidden,
	} {
		if got := r.statusAtHost(t, host); got != want {
			t.Errorf("the pages at %s have the status %d, want %d", host, got, want)
		}
	}
	cert, key, err = selfsigned.New("new.example.org")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "cert"), string(cert), 0o600)
	writeFile(t, filepath.Join(dir, "key"), string(key), 0o600)
	r.hangUp(t, "read the certificate again")
	if got := r.statusAtHost(t, "new.example.org"); got != http.StatusOK {
		t.Errorf("the pages at a name of the new certificate have the status %d", got)
	}
	call := pagesOf(t, r)
	var session explorer.Session
	call("session", nil, &session)
	if session.Kind != "owner" {
		t.Errorf("the session is %+v", session)
	}
	// A health check that does not know of the certificate finds it out.
	at, err := url.Parse("http" + strings.TrimPrefix(r.admin, "https") + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if err := health.Check(t.Context(), at, func(s string) string { return s }); err != nil {
		t.Error(err)
	}
}
