package server_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
)

// sharing are two servers of one account over one store, with one clock.
type sharing struct {
	a, b  *client
	clock atomic.Int64 // nanoseconds since testTime
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	s := &sharing{a: newClient(t)}
	other := *s.a
	s.b = &other
	for _, c := range []*client{s.a, s.b} {
		var err error
		c.handler, err = server.New(server.Options{
			Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: c.store}},
			Now:      func() time.Time { return testTime.Add(time.Duration(s.clock.Load())) },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// mostStale is the time after which every server has the change of another one.
const mostStale = 30 * time.Second

// TestTwoServersShareProperties changes service properties through one server while another
// one has read them.
func TestTwoServersShareProperties(t *testing.T) {
	s := newSharing(t)
	preflight := func(c *client) int {
		return c.send("OPTIONS", "/acct/People", "", "Origin", "http://a.example", "Access-Control-Request-Method", "GET").StatusCode
	}
	allowed := func(c *client) bool {
		return c.signed("GET", "/acct/People()", "", "Origin", "http://a.example").Header.Get("Access-Control-Allow-Origin") != ""
	}
	for _, rules := range []string{"<Cors>" + aRule + "</Cors>", "<Cors />", "<Cors>" + aRule + "</Cors>"} {
		preflight(s.a) // which caches the rules before
		s.b.want(s.b.signed("PUT", propertiesPath, document(rules)), response{status: 202})
		want := http.StatusForbidden
		if strings.Contains(rules, "CorsRule") {
			want = http.StatusOK
		}
		if got := preflight(s.b); got != want {
			t.Errorf("%.30s: the server that changed them answers a preflight with %d, want %d", rules, got, want)
		}
		// Requests come all the time, so that the age of the rules is not that of a pause.
		for step := time.Second; step < mostStale; step += time.Second {
			s.clock.Add(int64(time.Second))
			preflight(s.a)
		}
		s.clock.Add(int64(time.Second))
		if got := preflight(s.a); got != want || allowed(s.a) != (want == http.StatusOK) {
			t.Errorf("%.30s: another server answers a preflight with %d after %v, want %d", rules, got, mostStale, want)
		}
	}
	// A section that another server has set is not undone by old properties.
	s.a.want(s.a.signed("PUT", propertiesPath, document(hoursOn)), response{status: 202})
	s.b.want(s.b.signed("PUT", propertiesPath, document("<Cors />")), response{status: 202})
	s.b.want(s.b.signed("GET", propertiesPath, ""), response{status: 200, body: bom + document(loggingOff, hoursOn, minutesOff, "<Cors />")})
}

// TestTwoServersShareTables changes tables and access policies through one server. The other
// one has the change at once.
func TestTwoServersShareTables(t *testing.T) {
	s := newSharing(t)
	sas, err := s.a.credential.TableSAS(sharedkey.TableSAS{Table: "People", Identifier: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	policy := "<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Start>2021-06-17</Start><Expiry>2021-06-18</Expiry>" +
		"<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
	for _, step := range []struct {
		name               string
		method, path, body string // of a request to the other server
		want               int
	}{
		{"no policy", "GET", aclPath, "", 403},
		{"a policy", "PUT", aclPath, policy, 200},
		{"withdrawn", "PUT", aclPath, "", 403},
		{"a policy again", "PUT", aclPath, policy, 200},
		{"the table is deleted", "DELETE", "/acct/Tables('People')", "", 403},
		{"a new table", "POST", "/acct/Tables", `{"TableName":"People"}`, 403},
	} {
		if res := s.b.signed(step.method, step.path, step.body, "Content-Type", "application/json", "Accept", "application/json"); res.StatusCode >= 300 {
			t.Fatalf("%s: status %d", step.name, res.StatusCode)
		}
		if got := s.a.send("GET", "/acct/People()?"+sas, "", "Accept", "application/json").StatusCode; got != step.want {
			t.Errorf("%s: got status %d, want %d", step.name, got, step.want)
		}
	}
}

// TestTwoServersShareEntities writes an entity through two servers in turns, with ETags of
// the other.
func TestTwoServersShareEntities(t *testing.T) {
	s := newSharing(t)
	const path = "/acct/People(PartitionKey='p',RowKey='r')"
	etag := ""
	for i, c := range []*client{s.a, s.b, s.a, s.b} {
		method, headers := "PUT", []string{"Content-Type", "application/json", "Accept", "application/json"}
		if etag != "" {
			headers = append(headers, "If-Match", etag)
		}
		res := c.signed(method, path, `{"N":1}`, headers...)
		if res.StatusCode != http.StatusNoContent {
			t.Fatalf("write %d: status %d", i, res.StatusCode)
		}
		if res.Header.Get("Etag") == etag {
			t.Fatalf("write %d has the ETag of the write before", i)
		}
		etag = res.Header.Get("Etag")
	}
}
