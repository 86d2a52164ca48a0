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
	"github.com/tablerock-db/tablerock/tabletest"
)

// recordingsVariable names the folder of recorded sessions.
const recordingsVariable = "TABLEROCK_RECORDINGS"

// exchanged is one request of a recorded session and what the service answered.
// In all texts, {base} stands for the address of the account.
type exchanged struct {
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

// TestRecordings plays recorded sessions of the real service against a server of
// its own each, signed anew. What an answer means has to be the same; every other
// difference has to be in testdata/header-differences.txt.
func TestRecordings(t *testing.T) {
	dir := os.Getenv(recordingsVariable)
	if dir == "" {
		t.Skip(recordingsVariable + " names no folder of recorded sessions")
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
			var session []exchanged
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
		return // -run chose some
	}
	t.Logf("%d sessions, %d requests", played, requests)
	for _, d := range explained.unseen() {
		t.Errorf("testdata/header-differences.txt explains what does not occur: %s", d)
	}
}

// player plays one session.
type player struct {
	t          *testing.T
	srv        *tabletest.Server
	credential *sharedkey.Credential
	client     *http.Client
	explained  *explanations

	live    map[string]string // recorded moments and tokens, as they are in this play
	created []string          // tables
	put     string            // the last properties that were set
}

func newPlayer(t *testing.T, e *explanations) *player {
	p := &player{t: t, srv: tabletest.New(t), explained: e, live: map[string]string{}}
	var err error
	if p.credential, err = sharedkey.NewCredential(p.srv.Account, p.srv.Key); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	p.client = &http.Client{Transport: transport}
	return p
}

// reply is a live answer.
type reply struct {
	status  int
	headers map[string]string // by lower-case names
	body    string
}

func (p *player) play(i int, e *exchanged) {
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

// request makes e anew, for the live server.
func (p *player) request(e *exchanged) *http.Request {
	p.t.Helper()
	base := p.srv.Endpoint
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
	body := strings.ReplaceAll(p.substitute(e.Request.Body), "{base}", p.srv.Endpoint)
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

// sasNames are the parameters of signatures, which are made anew.
var sasNames = []string{"sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "tn", "spk", "srk", "epk", "erk", "si", "sig"}

// requery returns a query with the tokens of this play, and with a shared access
// signature of its own if there was one.
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

// resign makes a shared access signature of what an old one said.
func (p *player) resign(v url.Values) string {
	moment := func(name string, away time.Duration) string {
		if v.Get(name) == "" {
			return ""
		}
		return time.Now().UTC().Add(away).Format(time.RFC3339)
	}
	start, expiry := moment("st", -time.Hour), moment("se", time.Hour)
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

// moments are where the service says when it wrote an entity.
var moments = regexp.MustCompile(`(datetime(?:'|\\u0027|%27)|"Timestamp":")(\d{4}-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d+)?Z)`)

// learn takes note of what stands for what the service had said.
func (p *player) learn(e *exchanged, got reply) {
	note := func(recorded, live string) {
		a, b := moments.FindAllStringSubmatch(recorded, -1), moments.FindAllStringSubmatch(live, -1)
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

// substitute puts the moments of this play into a recorded text.
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
