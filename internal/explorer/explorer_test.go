package explorer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

var key = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 64))

// site is a server of the pages over two accounts in memory.
type site struct {
	*explorer.Handler
	t    *testing.T
	url  string
	db   *engine.DB
	cred *sharedkey.Credential
	log  *bytes.Buffer

	loading chan struct{} // if not nil, the end of a load waits for it

	mu       sync.Mutex
	now      time.Time          // +checklocks:mu
	accounts []explorer.Account // +checklocks:mu
	removed  bool               // all accounts; +checklocks:mu
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, now: time.Now(), log: &bytes.Buffer{}}
	var accounts []explorer.Account
	for _, name := range []string{"first", "second"} {
		db, err := engine.Open(name, engine.Options{FS: vfs.NewMem(), SegmentBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		keys, err := sharedkey.NewKeys(key)
		if err != nil {
			t.Fatal(err)
		}
		cred, err := sharedkey.NewCredential(name, key)
		if err != nil {
			t.Fatal(err)
		}
		if s.db == nil {
			s.db, s.cred = db, cred
		}
		accounts = append(accounts, explorer.Account{
			Name: name, Where: "/srv/" + name, Store: db, Keys: keys, Credential: cred, Stats: db.TableStats, Endpoint: "http://127.0.0.1:1/" + name,
			Load: func(ctx context.Context, table string, list iter.Seq2[edm.Entity, error], installed func(int64)) error {
				_, err := db.Load(ctx, table, list, engine.LoadOptions{Installed: func(r engine.LoadResult) { installed(r.Entities) }})
				if s.loading != nil {
					<-s.loading
				}
				return err
			},
			Snapshot: func() (transfer.Querier, func(), error) {
				snapshot, err := db.Snapshot()
				return snapshot, func() { snapshot.Close() }, err
			},
		})
	}
	s.mu.Lock()
	s.accounts = accounts
	s.mu.Unlock()
	h, err := explorer.New(explorer.Options{
		Accounts: func() []explorer.Account {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.removed {
				return nil
			}
			return slices.Clone(s.accounts)
		}, Problem: server.Problem, Cookie: "c", Version: "test",
		Log: slog.New(slog.NewTextHandler(s.log, nil)), Now: s.time,
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	s.Handler, s.url = h, web.URL
	t.Cleanup(func() { h.Close(); web.Close() })
	return s
}

func (s *site) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// change changes the first account.
func (s *site) change(f func(*explorer.Account)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.accounts[0])
}

// remove removes all accounts, or adds them again.
func (s *site) remove(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = all
}

func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// browser is a logged-in browser.
type browser struct {
	*site
	cookie, csrf string
}

// send sends a request with headers in pairs.
func (s *site) send(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(text)
}

// post sends JSON as a page does.
func (s *site) post(path string, body any, headers ...string) (*http.Response, string) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(http.MethodPost, "/ui/api/"+path, string(text), append([]string{"Content-Type", "application/json", "Origin", s.url}, headers...)...)
}

// once returns the token of a new link.
func (s *site) once() string { return strings.TrimPrefix(s.LoginPath(), "/ui/login#once=") }

func (s *site) login(body map[string]string) *browser {
	s.t.Helper()
	response, text := s.post("login", body)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("login: %s: %s", response.Status, text)
	}
	c := response.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		s.t.Errorf("the cookie is %v", c)
	}
	var d explorer.Session
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		s.t.Fatal(err)
	}
	return &browser{s, c.Name + "=" + c.Value, d.CSRF}
}

func (s *site) owner() *browser { return s.login(map[string]string{"once": s.once()}) }

// call sends a request of the API, with a body for POST, and sets out.
func (b *browser) call(out any, path string, body any) int {
	b.t.Helper()
	var response *http.Response
	var text string
	if body == nil {
		response, text = b.send(http.MethodGet, "/ui/api/"+path, "", "Cookie", b.cookie)
	} else {
		response, text = b.post(path, body, "Cookie", b.cookie, "X-Csrf-Token", b.csrf)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			b.t.Fatalf("%s: %s: %v: %s", path, response.Status, err, text)
		}
	}
	return response.StatusCode
}

// want calls and requires a status.
func (b *browser) want(status int, out any, path string, body any) {
	b.t.Helper()
	var raw json.RawMessage
	if got := b.call(&raw, path, body); got != status {
		b.t.Fatalf("%s: status %d, want %d: %s", path, got, status, raw)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			b.t.Fatal(err)
		}
	}
}

type object = map[string]any

func (s *site) fill(table string, partitions, rows int) {
	s.t.Helper()
	if err := s.db.CreateTable(s.t.Context(), table); err != nil {
		s.t.Fatal(err)
	}
	for p := range partitions {
		var ops []store.Op
		for r := range rows {
			ops = append(ops, store.Insert(edm.Entity{
				Key:        edm.Key{Partition: fmt.Sprint("p", p), Row: fmt.Sprintf("%04d", r)},
				Properties: edm.Properties{{Name: "N", Value: edm.Int64(int64(p*rows + r))}},
			}))
		}
		if _, err := s.db.Apply(s.t.Context(), table, ops...); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestLogins tries each way to log in, and the ways that must fail.
func TestLogins(t *testing.T) {
	s := newSite(t)
	sas, err := s.cred.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "sco", Permissions: "rl", Expiry: s.time().Add(time.Hour).UTC().Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
	var d explorer.Session
	s.owner().want(http.StatusOK, &d, "session", nil)
	if d.Kind != "owner" {
		t.Errorf("the session of a link is %+v", d)
	}
	keyed := s.login(map[string]string{"account": "first", "key": key})
	keyed.want(http.StatusOK, &d, "session", nil)
	var raw json.RawMessage
	keyed.want(http.StatusOK, &raw, "session", nil)
	if strings.Contains(string(raw), "null") {
		t.Errorf("the session %s has fields without a value", raw)
	}
	if d.Kind != "key" || d.Account != "first" {
		t.Errorf("the session of a key is %+v", d)
	}
	keyed.want(http.StatusNotFound, nil, "tables?a=second", nil)
	s.login(map[string]string{"account": "first", "sas": "?" + sas}).want(http.StatusOK, &d, "session", nil)
	if d.Kind != "sas" {
		t.Errorf("the session of a signature is %+v", d)
	}
	used := s.once()
	s.login(map[string]string{"once": used})
	late := s.once()
	s.pass(11 * time.Minute)
	wrong := strings.Replace(key, "a2", "b2", 1)
	for name, body := range map[string]map[string]string{
		"a used link": {"once": used}, "an old link": {"once": late}, "another key": {"account": "first", "key": wrong},
		"another account": {"account": "second", "sas": sas}, "an unknown account": {"account": "third", "key": key},
		"a changed signature": {"account": "first", "sas": strings.Replace(sas, "sp=rl", "sp=rwl", 1)}, "nothing": {},
	} {
		s.pass(time.Minute) // for the limit of failures
		response, text := s.post("login", body)
		if response.StatusCode != http.StatusForbidden || len(response.Cookies()) > 0 {
			t.Errorf("%s: %s %s", name, response.Status, text)
		}
		if strings.Contains(text, "sig=") || strings.Contains(text, wrong) {
			t.Errorf("%s: the answer %s has the secret", name, text)
		}
	}
	if strings.Contains(s.log.String(), "sig=") || strings.Contains(s.log.String(), key) {
		t.Errorf("the log has a secret: %s", s.log)
	}
	s.pass(2 * time.Hour)
	if status := keyed.call(nil, "session", nil); status != http.StatusOK {
		t.Errorf("after two hours a session has the status %d", status)
	}
	s.pass(12 * time.Hour)
	if status := keyed.call(nil, "session", nil); status != http.StatusUnauthorized {
		t.Errorf("after fourteen hours a session has the status %d", status)
	}
}

// TestLoginAgain requires that a login ends the session whose cookie it replaces, and no other, and
// that a login that fails ends none.
func TestLoginAgain(t *testing.T) {
	s := newSite(t)
	before, other := s.owner(), s.owner()
	if response, _ := s.post("login", object{"once": "wrong"}, "Cookie", before.cookie); response.StatusCode != http.StatusForbidden {
		t.Errorf("a wrong login: %s", response.Status)
	}
	before.want(http.StatusOK, nil, "session", nil)
	if response, text := s.post("login", object{"account": "first", "key": key}, "Cookie", before.cookie); response.StatusCode != http.StatusOK {
		t.Fatalf("login: %s: %s", response.Status, text)
	}
	before.want(http.StatusUnauthorized, nil, "session", nil)
	other.want(http.StatusOK, nil, "session", nil)
}

// TestExpiredSignature ends a session when its signature expires.
func TestExpiredSignature(t *testing.T) {
	s := newSite(t)
	sas, err := s.cred.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "co", Permissions: "rl", Expiry: s.time().Add(time.Hour).UTC().Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
	b := s.login(map[string]string{"account": "first", "sas": sas})
	b.want(http.StatusOK, nil, "tables?a=first", nil)
	s.pass(61 * time.Minute)
	b.want(http.StatusUnauthorized, nil, "tables?a=first", nil)
}

// TestManySessions logs in many times by signatures. That must end neither the sessions of the
// owner nor those of another account, only the oldest of the same account.
func TestManySessions(t *testing.T) {
	s := newSite(t)
	expiry := s.time().Add(12 * time.Hour).UTC().Format(time.RFC3339)
	sas, err := s.cred.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "co", Permissions: "r", Expiry: expiry})
	if err != nil {
		t.Fatal(err)
	}
	cred, err := sharedkey.NewCredential("second", key)
	if err != nil {
		t.Fatal(err)
	}
	another, err := cred.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "co", Permissions: "r", Expiry: expiry})
	if err != nil {
		t.Fatal(err)
	}
	stay := []*browser{s.owner(), s.login(map[string]string{"account": "first", "key": key}), s.login(map[string]string{"account": "second", "sas": another})}
	var signed []*browser
	for range 1000 {
		s.pass(time.Second)
		signed = append(signed, s.login(map[string]string{"account": "first", "sas": sas}))
	}
	for i, b := range append(stay, signed[900:]...) {
		if status := b.call(nil, "session", nil); status != http.StatusOK {
			t.Fatalf("session %d has the status %d", i, status)
		}
	}
	for i, b := range signed[:900] {
		if status := b.call(nil, "session", nil); status != http.StatusUnauthorized {
			t.Fatalf("session %d of a signature has the status %d", i, status)
		}
	}
	// A session keeps its signature, whose unknown parameters count nothing.
	response, _ := s.post("login", map[string]string{"account": "first", "sas": sas + "&x=" + strings.Repeat("x", 32<<10)})
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a signature of more than 32 KiB: %s", response.Status)
	}
}

// TestLoginLimit requires that an address that guesses must wait, and then may log in.
func TestLoginLimit(t *testing.T) {
	s := newSite(t)
	for i := range 5 {
		if response, _ := s.post("login", map[string]string{"once": fmt.Sprint(i)}); response.StatusCode != http.StatusForbidden {
			t.Fatalf("failure %d: %s", i, response.Status)
		}
	}
	response, _ := s.post("login", map[string]string{"once": s.once()})
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Fatalf("the sixth try: %s", response.Status)
	}
	s.pass(13 * time.Second)
	s.owner()
}

// TestLongLogin requires that a login is refused before the server keeps megabytes of it: anybody
// can send one.
func TestLongLogin(t *testing.T) {
	s := newSite(t)
	response, text := s.post("login", map[string]string{"account": "first", "key": strings.Repeat("A", 128<<10)})
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a login of 128 KiB: %s: %s", response.Status, text)
	}
	s.owner()
}

// TestOtherOrigins sends what a page of another origin can send.
func TestOtherOrigins(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	linked := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for name, c := range map[string]struct {
		method, path string
		headers      []string
	}{
		"a rebound name":             {"GET", "/ui/api/accounts", []string{"Host", "evil.example:" + at.Port()}},
		"a rebound name of a page":   {"GET", "/ui/", []string{"Host", "evil.example"}},
		"a name that ends like ours": {"GET", "/ui/", []string{"Host", "localhost.evil.example"}},
		"another origin":             {"POST", "/ui/api/logout", []string{"Origin", "http://evil.example", "X-Csrf-Token", b.csrf}},
		"another port":               {"POST", "/ui/api/logout", []string{"Origin", "http://127.0.0.1:1", "X-Csrf-Token", b.csrf}},
		"the scheme of another":      {"POST", "/ui/api/logout", []string{"Origin", "https://" + at.Host, "X-Csrf-Token", b.csrf}},
		"an opaque origin":           {"POST", "/ui/api/logout", []string{"Origin", "null", "X-Csrf-Token", b.csrf}},
		"no origin":                  {"POST", "/ui/api/logout", []string{"X-Csrf-Token", b.csrf}},
		"no token":                   {"POST", "/ui/api/logout", []string{"Origin", s.url}},
		"a wrong token":              {"POST", "/ui/api/logout", []string{"Origin", s.url, "X-Csrf-Token", b.csrf[1:]}},
		"a script of another site":   {"GET", "/ui/api/accounts", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}},
		"a frame of another site":    {"GET", "/ui/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		"an API link":                {"GET", "/ui/api/accounts", linked},
	} {
		headers := append([]string{"Cookie", b.cookie, "Content-Type", "application/json"}, c.headers...)
		response, text := s.send(c.method, c.path, "{}", headers...)
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s %.200s", name, response.Status, text)
		}
	}
	response, _ := s.send("GET", "/ui/", "", append([]string{"Cookie", b.cookie}, linked...)...)
	if response.StatusCode != http.StatusOK {
		t.Errorf("a link elsewhere opens no page: %s", response.Status)
	}
	form, _ := s.send("POST", "/ui/api/login", "once="+s.once(), "Origin", s.url, "Content-Type", "application/x-www-form-urlencoded")
	if form.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form logs in: %s", form.Status)
	}
}

// TestHeaders checks the headers of each kind of response, also of failures.
func TestHeaders(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	for _, path := range []string{"/ui/", "/ui/login", "/ui/none", "/ui/api/accounts", "/ui/api/none", "/ui/assets/x/y.js", "/ui/engine", "/ui/error"} {
		response, text := s.send("GET", path, "", "Cookie", b.cookie)
		policy := response.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q has no %s", path, policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") || response.Header.Get("X-Content-Type-Options") != "nosniff" ||
			response.Header.Get("Cache-Control") != "no-store" || response.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: the headers are %v", path, response.Header)
		}
		for _, inline := range []string{" style=", "<style", " onclick", "javascript:", "http://", "https://"} {
			if strings.Contains(text, inline) {
				t.Errorf("%s: the page has %s", path, inline)
			}
		}
	}
	response, _ := s.send("GET", "/ui/table?a=x", "")
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/ui/login?next=%2Fui%2Ftable%3Fa%3Dx" {
		t.Errorf("without a session: %s to %s", response.Status, response.Header.Get("Location"))
	}
	if response, _ := s.send("GET", "/ui/api/accounts", ""); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API without a session: %s", response.Status)
	}
}

// TestFirstPage limits what a browser loads for the first page, and the time of the server.
func TestFirstPage(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	total, seen := 0, map[string]bool{}
	var load func(path string)
	load = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		begin := time.Now()
		response, text := s.send("GET", path, "", "Cookie", b.cookie, "Accept-Encoding", "gzip")
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, response.Status)
		}
		if took := time.Since(begin); took > 150*time.Millisecond {
			t.Logf("%s takes %v", path, took)
		}
		total += len(text)
		if response.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			text = string(plain)
		}
		for _, quote := range strings.FieldsFunc(text, func(r rune) bool { return r == '"' }) {
			if strings.HasPrefix(quote, "/ui/assets/") {
				load(quote)
			}
			if name, ok := strings.CutPrefix(quote, "./"); ok && strings.HasSuffix(name, ".js") {
				load(path[:strings.LastIndex(path, "/")+1] + name)
			}
		}
	}
	load("/ui/")
	if len(seen) < 5 || total > 150<<10 {
		t.Errorf("the first page has %d files and %d bytes", len(seen), total)
	}
}
