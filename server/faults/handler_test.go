package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/store/storetest"
)

const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// service is a running server whose requests can fail.
type service struct {
	t      *testing.T
	url    string
	client http.Client
	sign   *sharedkey.Credential
	now    func() time.Time

	mu     sync.Mutex
	faults []string
	events []server.Event
}

// start starts a server with the rules in text and the tables Aaa and Bbb.
func start(t *testing.T, text string, seed uint64, now func() time.Time) *service {
	t.Helper()
	s := &service{t: t, now: now}
	if now == nil {
		s.now = time.Now
	}
	st := storetest.NewMap(nil)
	for _, table := range []string{"Aaa", "Bbb"} {
		if err := st.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	inner, err := server.New(server.Options{
		Accounts: []server.Account{{Name: account, Keys: []string{key}, Store: st}}, Now: s.now,
		Observe: func(e server.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := faults.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h, err := faults.New(inner, inner, rules, faults.Options{Seed: seed, Now: now, Observe: func(f faults.Fault) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = append(s.faults, f.Operation+" "+f.Table+" "+f.String())
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	s.url = web.URL
	s.client.Transport = &http.Transport{DisableKeepAlives: true}
	if s.sign, err = sharedkey.NewCredential(account, key); err != nil {
		t.Fatal(err)
	}
	return s
}

// send sends a request. Its result has the status 0 if the connection was cut.
func (s *service) send(method, path, body string) (response *http.Response, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/"+account+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;odata=nometadata")
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "--") {
		r.Header.Set("Content-Type", "multipart/mixed; boundary=b")
	}
	if err := s.sign.SignRequest(r, s.now()); err != nil {
		s.t.Fatal(err)
	}
	response, err = s.client.Do(r)
	if err != nil {
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(content)
}

// want sends a request and checks its status.
func (s *service) want(status int, method, path, body string) *http.Response {
	s.t.Helper()
	response, text := s.send(method, path, body)
	if response.StatusCode != status {
		s.t.Fatalf("%s %s: status %d %s, want %d", method, path, response.StatusCode, text, status)
	}
	return response
}

func rule(operation, answer, more string) string {
	return fmt.Sprintf(`[{"operation": %q, "answer": %q, "probability": 1%s}]`, operation, answer, more)
}

const (
	entities = "/Aaa"
	entity   = "/Aaa(PartitionKey='p',RowKey='1')"
	row      = `{"PartitionKey":"p","RowKey":"1"}`
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		answer, more string
		status       int
		code         string
		applied      bool
	}{
		{"ServerBusy", `, "retryAfter": "7s"`, http.StatusServiceUnavailable, "ServerBusy", false},
		{"OperationTimedOut", "", http.StatusInternalServerError, "OperationTimedOut", false},
		{"CutBefore", "", 0, "", false},
		{"CutAfter", "", 0, "", true},
		{"Delay", `, "delay": "1ms"`, http.StatusCreated, "", true},
	} {
		t.Run(c.answer, func(t *testing.T) {
			s := start(t, rule("InsertEntity", c.answer, c.more), 1, nil)
			response, text := s.send(http.MethodPost, entities, row)
			if response.StatusCode != c.status || !strings.Contains(text, c.code) {
				t.Errorf("status %d, %s, want %d %s", response.StatusCode, text, c.status, c.code)
			}
			if c.code != "" && (!strings.HasPrefix(text, `{"odata.error":{"code":"`+c.code) || response.Header.Get("X-Ms-Request-Id") == "") {
				t.Errorf("the response is not in the form of the service: %s, %v", text, response.Header)
			}
			if after := response.Header.Get("Retry-After"); c.answer == "ServerBusy" && after != "7" {
				t.Errorf("Retry-After %q, want 7", after)
			}
			status := http.StatusNotFound
			if c.applied {
				status = http.StatusOK
			}
			s.want(status, http.MethodGet, entity, "")
		})
	}
}

// TestForms compares the form of a failure with the operation: properties are XML.
func TestForms(t *testing.T) {
	s := start(t, rule("*", "ServerBusy", ""), 1, nil)
	for path, prefix := range map[string]string{
		"/?restype=service&comp=properties": "\ufeff<?xml", "/Aaa?comp=acl": "\ufeff<?xml", "/Aaa()": `{"odata.error"`, "/Tables": `{"odata.error"`,
	} {
		_, text := s.send(http.MethodGet, path, "")
		if !strings.HasPrefix(strings.TrimPrefix(text, "\ufeff"), strings.TrimPrefix(prefix, "\ufeff")) || !strings.Contains(text, "ServerBusy") {
			t.Errorf("%s: %q, want it to begin with %q", path, text, prefix)
		}
	}
	if n := len(s.events); n != 4 || s.events[0].Status != http.StatusServiceUnavailable || s.events[0].Err == nil {
		t.Errorf("%d events, %+v", n, s.events)
	}
}

const batch = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n" +
	"Content-Transfer-Encoding: binary\r\n\r\nPOST /devstoreaccount1/Aaa HTTP/1.1\r\nContent-Type: application/json\r\n\r\n" + row + "\r\n--c--\r\n--b--\r\n"

// TestBatch checks that a request in $batch is one operation.
func TestBatch(t *testing.T) {
	s := start(t, `[{"operation": "InsertEntity", "answer": "CutBefore", "probability": 1},
		{"operation": "Batch", "answer": "ServerBusy", "probability": 1, "times": 1}]`, 1, nil)
	s.want(http.StatusServiceUnavailable, http.MethodPost, "/$batch", batch)
	s.want(http.StatusNotFound, http.MethodGet, entity, "")
	s.want(http.StatusAccepted, http.MethodPost, "/$batch", batch)
	s.want(http.StatusOK, http.MethodGet, entity, "")
}

// TestTableBeingDeleted uses a table until the time of the rule is over.
func TestTableBeingDeleted(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	s := start(t, rule("DeleteTable", "TableBeingDeleted", `, "for": "40s"`), 1, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	s.want(http.StatusNotFound, http.MethodDelete, "/Tables('None')", "")
	s.want(http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"None"}`)
	s.want(http.StatusNoContent, http.MethodDelete, "/Tables('Aaa')", "")
	for path, body := range map[string]string{"/Tables": `{"TableName":"aAA"}`, "/Aaa": row} {
		response, text := s.send(http.MethodPost, path, body)
		if response.StatusCode != http.StatusConflict || !strings.Contains(text, `"TableBeingDeleted"`) {
			t.Errorf("POST %s: %d %s", path, response.StatusCode, text)
		}
	}
	s.want(http.StatusConflict, http.MethodGet, entity, "")
	s.want(http.StatusConflict, http.MethodPost, "/Tables", "\ufeff"+`{"TableName":"Aaa"}`)
	s.want(http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Ccc"}`)
	s.want(http.StatusCreated, http.MethodPost, "/Bbb", row)
	mu.Lock()
	now = now.Add(40 * time.Second)
	mu.Unlock()
	s.want(http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Aaa"}`)
}

// TestCutTableBeingDeleted cuts the connection of a client that creates a table while its name
// cannot be used: the table must not be there later.
func TestCutTableBeingDeleted(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	s := start(t, `[{"operation": "DeleteTable", "answer": "TableBeingDeleted", "probability": 1, "for": "40s"},
		{"operation": "CreateTable", "answer": "CutAfter", "probability": 1, "times": 1}]`, 1, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	s.want(http.StatusNoContent, http.MethodDelete, "/Tables('Aaa')", "")
	s.want(0, http.MethodPost, "/Tables", `{"TableName":"Aaa"}`)
	s.want(http.StatusConflict, http.MethodPost, "/Tables", `{"TableName":"Aaa"}`)
	mu.Lock()
	now = now.Add(40 * time.Second)
	mu.Unlock()
	s.want(http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Aaa"}`)
}

func TestTimesAndTable(t *testing.T) {
	s := start(t, rule("InsertEntity", "ServerBusy", `, "times": 2, "table": "bbb"`), 1, nil)
	var got []int
	for i := range 4 {
		body := fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d"}`, i)
		s.want(http.StatusCreated, http.MethodPost, "/Aaa", body)
		response, _ := s.send(http.MethodPost, "/Bbb", body)
		got = append(got, response.StatusCode)
	}
	if !slices.Equal(got, []int{503, 503, 201, 201}) {
		t.Errorf("got %v", got)
	}
}

// TestTimesOfAnyOperation limits a rule for all operations: it counts them together.
func TestTimesOfAnyOperation(t *testing.T) {
	s := start(t, rule("*", "ServerBusy", `, "times": 2`), 1, nil)
	for i, want := range []int{503, 503, 404, 200, 200} {
		s.want(want, http.MethodGet, []string{entities, "/Tables", entity, entities, "/Tables"}[i], "")
	}
}

// TestUncounted sends requests that are no operation.
func TestUncounted(t *testing.T) {
	s := start(t, rule("*", "ServerBusy", ""), 1, nil)
	for _, path := range []string{"/healthz", "/none", "/" + account + "/$metadata"} {
		response, err := s.client.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusServiceUnavailable {
			t.Errorf("%s fails", path)
		}
	}
	if len(s.faults) != 0 {
		t.Errorf("faults %v", s.faults)
	}
}

const mixed = `[{"operation": "*", "answer": "Delay", "probability": 0.2, "delay": "0s", "maxDelay": "1ms"},
	{"operation": "InsertEntity", "answer": "ServerBusy", "probability": 0.2},
	{"operation": "*", "answer": "CutAfter", "probability": 0.1, "table": "Aaa"}]`

// inserts returns the statuses of a sequence of inserts, and what the observer saw of them.
func (s *service) inserts() (statuses []int, seen []string) {
	for i := range 60 {
		response, _ := s.send(http.MethodPost, entities, fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d"}`, i))
		statuses = append(statuses, response.StatusCode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if strings.HasPrefix(f, "InsertEntity Aaa") {
			seen = append(seen, f)
		}
	}
	return statuses, seen
}

// TestSeed compares the failures of two runs with one seed, the second beside requests of
// another operation, and those of another seed.
func TestSeed(t *testing.T) {
	first, seen := start(t, mixed, 7, nil).inserts()
	second := start(t, mixed, 7, nil)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				second.send(http.MethodGet, "/Aaa()", "")
			}
		}
	}()
	again, seenAgain := second.inserts()
	close(stop)
	<-stopped
	if !slices.Equal(first, again) || !slices.Equal(seen, seenAgain) {
		t.Errorf("seed 7 gives\n%v %q\nand then\n%v %q", first, seen, again, seenAgain)
	}
	if !slices.Contains(first, 503) || !slices.Contains(first, 0) || !slices.Contains(first, 201) {
		t.Errorf("an answer is missing in %v", first)
	}
	if other, _ := start(t, mixed, 8, nil).inserts(); slices.Equal(first, other) {
		t.Error("seed 8 gives the failures of seed 7")
	}
}

// TestConcurrent checks that the number of failures among requests of one operation that run
// at the same time depends only on the seed.
func TestConcurrent(t *testing.T) {
	text := `[{"operation": "GetEntity", "answer": "ServerBusy", "probability": 0.3}]`
	count := func() (failures int) {
		s := start(t, text, 3, nil)
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for range 25 {
					s.send(http.MethodGet, entity, "")
				}
			})
		}
		clients.Wait()
		return len(s.faults)
	}
	first, second := count(), count()
	if first != second || first < 10 || first > 50 {
		t.Errorf("%d failures of 100 requests, then %d", first, second)
	}
}

// TestDelay checks that a request waits, and no longer than its client.
func TestDelay(t *testing.T) {
	s := start(t, rule("GetEntity", "ServerBusy", `, "delay": "50ms"`), 1, nil)
	began := time.Now()
	s.want(http.StatusServiceUnavailable, http.MethodGet, entity, "")
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("the response came after %v", took)
	}
	s = start(t, rule("GetEntity", "Delay", `, "delay": "30s"`), 1, nil)
	s.client.Timeout = 20 * time.Millisecond
	if response, _ := s.send(http.MethodGet, entity, ""); response.StatusCode != 0 {
		t.Errorf("status %d", response.StatusCode)
	}
}
