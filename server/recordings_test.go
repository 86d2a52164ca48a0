package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// recordingsVariable is the environment variable with the folder of recorded sessions.
const recordingsVariable = "TABLEROCK_RECORDINGS"

// recorded is a request of a session and the response of the service. In all texts, {base}
// is the URL of the account.
type recorded struct {
	Request struct {
		Method    string
		Secondary bool
		Path      string
		Headers   map[string]string
		Body      string
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    string
	}
}

// TestRecordings repeats recorded sessions of the real service, each with a new server and
// with new signatures. The meaning of a response must be the same, and any other difference
// must be in testdata/header-differences.txt.
func TestRecordings(t *testing.T) {
	dir := os.Getenv(recordingsVariable)
	if dir == "" {
		t.Skip(recordingsVariable + " is not set, so there are no recorded sessions")
	}
	files, err := filepath.Glob(filepath.Join(dir, "sessions", "*.json"))
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(dir, "*.json"))
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no session in %s of %s: %v", dir, recordingsVariable, err)
	}
	explained := readExplained(t)
	played, requests := 0, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var session []recorded
			if err := json.Unmarshal(text, &session); err != nil {
				t.Fatal(err)
			}
			if len(session) == 0 {
				t.Fatal("a session without a request")
			}
			p := newPlayer(t, explained)
			for i := range session {
				p.play(i, &session[i])
			}
			played++
			requests += len(session)
		})
	}
	if played < len(files) {
		return // -run selects some
	}
	t.Logf("%d sessions, %d requests", played, requests)
	for _, d := range explained.unseen() {
		t.Errorf("testdata/header-differences.txt has a difference that does not occur: %s", d)
	}
}

// player repeats one session.
type player struct {
	t          *testing.T
	srv        testServer
	credential *sharedkey.Credential
	client     *http.Client
	explained  *explanations

	live    map[string]string // times and tokens of this run, by the recorded ones
	created []string          // tables
	put     string            // the last properties that were set
}

func newPlayer(t *testing.T, e *explanations) *player {
	p := &player{t: t, srv: newServer(t), explained: e, live: map[string]string{}}
	var err error
	if p.credential, err = sharedkey.NewCredential(p.srv.name, p.srv.key); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	p.client = &http.Client{Transport: transport}
	return p
}

// reply is a response of this run.
type reply struct {
	status  int
	headers map[string]string // by lower-case names
	body    string
}

func (p *player) play(i int, e *recorded) {
	p.t.Helper()
	r := p.request(e)
	res, err := p.client.Do(r)
	if err != nil {
		p.t.Fatalf("request %d, %s %s: %v", i, e.Request.Method, e.Request.Path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatalf("request %d, %s %s: %v", i, e.Request.Method, e.Request.Path, err)
	}
	got := reply{status: res.StatusCode, headers: map[string]string{}, body: string(body)}
	for name, values := range res.Header {
		got.headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	for _, coding := range res.TransferEncoding {
		got.headers["transfer-encoding"] = coding
	}
	c := comparison{player: p, index: i, recorded: e, got: got}
	c.compare()
	p.learn(e, got)
}

// request returns the request of e, for the server of this run.
func (p *player) request(e *recorded) *http.Request {
	p.t.Helper()
	base := p.srv.endpoint
	if e.Request.Secondary {
		base += "-secondary"
	}
	path, query, _ := strings.Cut(p.substitute(e.Request.Path), "?")
	u, err := url.Parse(base + strings.ReplaceAll(path, " ", "%20"))
	if err != nil {
		p.t.Fatal(err)
	}
	signed := strings.Contains(query, "sig=")
	u.RawQuery = p.requery(query)
	body := strings.ReplaceAll(p.substitute(e.Request.Body), "{base}", p.srv.endpoint)
	r, err := http.NewRequestWithContext(p.t.Context(), e.Request.Method, u.String(), strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for name, value := range e.Request.Headers {
		if name != "content-length" {
			r.Header.Set(name, p.substitute(value))
		}
	}
	if signed {
		return r
	}
	if err := p.credential.SignRequest(r, time.Now()); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// sasNames are the parameters of shared access signatures.
var sasNames = []string{"sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "tn", "spk", "srk", "epk", "erk", "si", "sig"}

// requery returns a query with the tokens of this run and, if it has a shared access
// signature, with a new one.
func (p *player) requery(query string) string {
	query = strings.ReplaceAll(query, " ", "%20")
	values, err := url.ParseQuery(query)
	if err != nil {
		p.t.Fatal(err)
	}
	var kept []string
	for item := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(item, "=")
		plain, err := url.QueryUnescape(value)
		switch {
		case slices.Contains(sasNames, name) && values.Has("sig"):
		case strings.HasPrefix(name, "Next") && err == nil && p.live[plain] != "":
			kept = append(kept, name+"="+url.QueryEscape(p.live[plain]))
		case item != "":
			kept = append(kept, item)
		}
	}
	if values.Has("sig") {
		kept = append(kept, p.resign(values))
	}
	return strings.Join(kept, "&")
}

// resign returns a new shared access signature with the fields of v.
func (p *player) resign(v url.Values) string {
	shifted := func(name string, by time.Duration) string {
		if v.Get(name) == "" {
			return ""
		}
		return time.Now().UTC().Add(by).Format(time.RFC3339)
	}
	start, expiry := shifted("st", -time.Hour), shifted("se", time.Hour)
	var text string
	var err error
	if v.Has("ss") {
		text, err = p.credential.AccountSAS(sharedkey.AccountSAS{
			Version: v.Get("sv"), Services: v.Get("ss"), ResourceTypes: v.Get("srt"), Permissions: v.Get("sp"), Start: start, Expiry: expiry,
		})
	} else {
		text, err = p.credential.TableSAS(sharedkey.TableSAS{
			Version: v.Get("sv"), Table: v.Get("tn"), Permissions: v.Get("sp"), Start: start, Expiry: expiry, Identifier: v.Get("si"),
			StartPartition: v.Get("spk"), StartRow: v.Get("srk"), EndPartition: v.Get("epk"), EndRow: v.Get("erk"),
		})
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// recordedTimes matches Timestamps and ETags.
var recordedTimes = regexp.MustCompile(`(datetime(?:'|\\u0027|%27)|"Timestamp":")(\d{4}-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d+)?Z)`)

// learn records the times and tokens of this run for the recorded ones.
func (p *player) learn(e *recorded, got reply) {
	note := func(recorded, live string) {
		a, b := recordedTimes.FindAllStringSubmatch(recorded, -1), recordedTimes.FindAllStringSubmatch(live, -1)
		for i := range a {
			if i < len(b) {
				p.live[a[i][2]] = b[i][2]
			}
		}
	}
	note(e.Response.Headers["etag"], got.headers["etag"])
	note(e.Response.Body, got.body)
	for name, value := range e.Response.Headers {
		if strings.HasPrefix(name, "x-ms-continuation-") {
			p.live[value] = got.headers[name]
		}
	}
	if got.status == http.StatusCreated || got.status == http.StatusNoContent {
		var table struct{ TableName string }
		if e.Request.Path == "/Tables" && json.Unmarshal([]byte(e.Request.Body), &table) == nil {
			p.created = append(p.created, table.TableName)
		}
	}
	if e.Request.Method == http.MethodPut && strings.Contains(e.Request.Path, "comp=properties") {
		p.put = e.Request.Body
	}
}

var escapeColons = strings.NewReplacer(":", "%3A")

// substitute replaces recorded times by those of this run.
func (p *player) substitute(text string) string {
	for recorded, live := range p.live {
		if recorded == "" || live == "" || !strings.HasSuffix(recorded, "Z") {
			continue
		}
		text = strings.ReplaceAll(text, recorded, live)
		text = strings.ReplaceAll(text, escapeColons.Replace(recorded), escapeColons.Replace(live))
	}
	return text
}
