package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

var rewrite = flag.Bool("rewrite", false, "write the results of the server to testdata and README.md instead of comparing them")

// transcripts are files of raw requests and exact responses. Their README.md has the
// format.
const transcripts = "testdata/transcripts/*.txt"

// TestTranscripts sends the requests of each transcript, in order, to a new server, and
// compares the responses. The transcripts must have every operation and every error of the
// protocol. Rewrite the responses with go test ./server -run TestTranscripts -rewrite.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(transcripts)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	var operations, responses []string
	passed := true
	for _, file := range files {
		passed = t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			o, a := playTranscript(t, file)
			operations, responses = append(operations, o...), append(responses, a...)
		}) && passed
	}
	if !passed || len(responses) == 0 {
		return
	}
	for _, o := range server.Routes() {
		if !slices.Contains(operations, o) {
			t.Errorf("no transcript has a success of %s", o)
		}
	}
	for _, p := range statedProblems(t) {
		if !slices.ContainsFunc(responses, p.in) {
			t.Errorf("no transcript has %s: %s", p.code, p.message)
		}
	}
}

// step is one request of a transcript, with its title and response.
type step struct {
	title, request, response string
}

// parseTranscript splits a transcript into the text before the first step, and the steps.
func parseTranscript(t *testing.T, text string) (head string, steps []step) {
	head, rest, ok := strings.Cut(text, "\n\n### ")
	if !ok {
		t.Fatal("a transcript without a request")
	}
	for _, text := range strings.Split(rest, "\n### ") {
		title, text, _ := strings.Cut(text, "\n")
		request, response, _ := strings.Cut(text, "\n---\n")
		steps = append(steps, step{title, request, strings.TrimRight(response, "\n")})
	}
	return head, steps
}

func playTranscript(t *testing.T, file string) (operations, responses []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, steps := parseTranscript(t, string(text))
	var secured *tls.Config
	if strings.HasSuffix(file, "tls.txt") {
		secured = testCertificate()
	}
	w := newWire(t, func(s store.Store) store.Store { return brokenStore{s} }, secured)
	if secured != nil {
		w.tls = &tls.Config{InsecureSkipVerify: true} // the connection is on loopback
	}
	var others *stamps
	if onPostgres(t) {
		others = newStamps()
	}
	var b strings.Builder
	b.WriteString(head + "\n")
	for i := range steps {
		s := &steps[i]
		w.clock.advance(time.Millisecond)
		request, want := s.request, s.response
		if others != nil {
			request = others.request(request)
		}
		raw, res := w.exchange(w.rawRequest(request))
		got := readable(string(raw))
		if others != nil {
			got, want = withoutLengths(others.response(got, want)), withoutLengths(want)
			if slices.Contains(otherStamps, s.title) {
				got = want
			}
		}
		if got != want && !*rewrite {
			t.Errorf("%s: %s\ngot\n%s\nwant\n%s", file, s.title, got, want)
		}
		responses = append(responses, got)
		for _, e := range w.takeEvents() {
			if e.Status < http.StatusBadRequest && res != nil {
				operations = append(operations, e.Method+" "+e.Operation)
			}
		}
		b.WriteString("\n### " + s.title + "\n" + s.request + "\n---\n" + got + "\n")
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return operations, responses
}

// rawRequest returns the bytes of a request by its text in a transcript: lines end with CR
// LF, {length} is replaced by the length of the body, {signature} by a signature, {5 x} by
// xxxxx.
func (w *wire) rawRequest(text string) string {
	w.t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	body = strings.ReplaceAll(body, "\n", "\r\n")
	body = repeats.ReplaceAllStringFunc(body, func(s string) string {
		n, err := strconv.Atoi(s[1 : len(s)-3])
		if err != nil {
			w.t.Fatal(err)
		}
		return strings.Repeat(s[len(s)-2:len(s)-1], n)
	})
	head = strings.Replace(head, "{length}", strconv.Itoa(len(body)), 1)
	lines := strings.Split(head, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	target, proto, _ := strings.Cut(target, " ")
	path, query, _ := strings.Cut(target, "?")
	if strings.Contains(query, "{signature}") {
		sas := w.resign(strings.TrimSuffix(query, "&sig={signature}"))
		lines[0] = method + " " + path + "?" + sas + " " + proto
	}
	header := http.Header{}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header.Add(name, value)
	}
	r := sharedkey.Request{Method: method, Path: path, RawQuery: query, Header: header}
	for i, line := range lines {
		sign := w.credential.SharedKey
		switch {
		case !strings.HasPrefix(line, "Authorization: ") || !strings.HasSuffix(line, "{signature}"):
			continue
		case strings.Contains(line, "SharedKeyLite"):
			sign = w.credential.SharedKeyLite
		}
		signed, err := sign(&r)
		if err != nil {
			w.t.Fatal(err)
		}
		_, signature, _ := strings.Cut(signed, ":")
		lines[i] = strings.Replace(line, "{signature}", signature, 1)
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// resign signs a query that is a shared access signature without sig. Other parameters must
// be first, and stay there.
func (w *wire) resign(query string) string {
	w.t.Helper()
	own, sas := "", query
	if i := strings.Index(query, "sv="); i > 0 {
		own, sas = query[:i], query[i:]
	}
	values, err := url.ParseQuery(sas)
	if err != nil {
		w.t.Fatal(err)
	}
	v := map[string]string{}
	for name := range values {
		v[name] = values.Get(name)
	}
	var text string
	if v["ss"] != "" {
		text, err = w.credential.AccountSAS(sharedkey.AccountSAS{
			Version: v["sv"], Services: v["ss"], ResourceTypes: v["srt"], Permissions: v["sp"], Start: v["st"], Expiry: v["se"], IP: v["sip"], Protocol: v["spr"],
		})
	} else {
		text, err = w.credential.TableSAS(sharedkey.TableSAS{
			Version: v["sv"], Table: v["tn"], Permissions: v["sp"], Start: v["st"], Expiry: v["se"], IP: v["sip"], Protocol: v["spr"], Identifier: v["si"],
			StartPartition: v["spk"], StartRow: v["srk"], EndPartition: v["epk"], EndRow: v["erk"],
		})
	}
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return own + text
}

var repeats = regexp.MustCompile(`\{\d+ [a-z]\}`)

// datePattern matches the header that net/http sets by its own clock.
var datePattern = regexp.MustCompile(`(?m)^Date: .*$`)

// madeIDs matches ids that the server creates.
var madeIDs = regexp.MustCompile(`(RequestId:|X-Ms-Request-Id: |response_)` + guid.String())

// readable returns a response in the form of a transcript.
func readable(raw string) string {
	s := strings.ReplaceAll(raw, "\r\n", "\n")
	s = datePattern.ReplaceAllString(s, "Date: {date}")
	s = madeIDs.ReplaceAllString(s, "$1{guid}")
	s = strings.ReplaceAll(s, "\ufeff", "{BOM}")
	return strings.TrimRight(s, "\n")
}

// brokenStore fails writes to the tables Broken, Slow and Full, each with its own error.
type brokenStore struct{ store.Store }

func (s brokenStore) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	switch table {
	case "Broken":
		return nil, errors.New("a secret of the machine")
	case "Slow":
		return nil, context.DeadlineExceeded
	case "Full":
		return nil, store.ErrNoSpace
	}
	return s.Store.Apply(ctx, table, ops...)
}

// testCertificate returns a certificate for loopback, for tests only.
func testCertificate() *tls.Config {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}
