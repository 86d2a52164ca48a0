package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

const (
	propertiesPath = "/acct/?restype=service&comp=properties"
	off            = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
	loggingOff     = "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>" + off + "</Logging>"
	hoursOff       = "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>" + off + "</HourMetrics>"
	hoursOn        = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled>" +
		"<Days>5</Days></RetentionPolicy></HourMetrics>"
	minutesOff = "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>" + off + "</MinuteMetrics>"
	aRule      = "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://a.example</AllowedOrigins><AllowedHeaders>accept," +
		"x-ms-*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>"
	anyRule = "<CorsRule><AllowedMethods>DELETE,GET</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders /><ExposedHeaders>" +
		"etag</ExposedHeaders><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule>"
)

func document(sections ...string) string {
	return "<StorageServiceProperties>" + strings.Join(sections, "") + "</StorageServiceProperties>"
}

func TestServiceProperties(t *testing.T) {
	c := newClient(t)
	c.want(c.signed("GET", propertiesPath, ""), response{status: 200, body: bom + document(loggingOff, hoursOff, minutesOff, "<Cors />")})
	c.want(c.signed("PUT", propertiesPath, document(hoursOn)), response{status: 202})
	c.want(c.signed("PUT", "/acct?comp=properties&restype=service", document("<Cors>"+aRule+"</Cors>")), response{status: 202})
	both := response{status: 200, body: bom + document(loggingOff, hoursOn, minutesOff, "<Cors>"+aRule+"</Cors>")}
	c.want(c.signed("GET", "/acct?comp=properties&restype=service", ""), both)
	for _, doc := range []string{
		"", "{}", document(), document("<Cors><CorsRule /></Cors>"), document(strings.Replace(hoursOn, ">5<", ">366<", 1)),
		document("<Cors>" + strings.Repeat(aRule, 6) + "</Cors>"), document(hoursOff) + strings.Repeat(" ", 64<<10),
	} {
		c.want(c.signed("PUT", propertiesPath, doc), response{status: 400, code: "InvalidXmlDocument"})
	}
	c.want(c.signed("GET", propertiesPath, ""), both)
	c.want(c.signed("GET", "/acct-secondary/?restype=service&comp=properties", ""), both)

	// Another server reads the same from the stored bytes.
	other := newClient(t)
	meta, err := c.store.AccountMeta(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.store.SetAccountMeta(t.Context(), meta); err != nil {
		t.Fatal(err)
	}
	other.want(other.signed("GET", propertiesPath, ""), both)
}

func TestServiceStats(t *testing.T) {
	c := newClient(t)
	c.want(c.signed("GET", "/acct-secondary/?restype=service&comp=stats", ""), response{
		status: 200,
		body: bom + "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Thu, 17 Jun 2021 16:54:23 GMT</LastSyncTime></GeoReplication>" +
			"</StorageServiceStats>",
	})
	c.want(c.signed("GET", "/acct/?restype=service&comp=stats", ""), response{status: 400, code: "InvalidQueryParameterValue"})
}

// TestPropertiesAreCached counts the reads of the account's metadata.
func TestPropertiesAreCached(t *testing.T) {
	c := newClient(t)
	reads := func(want int64) {
		t.Helper()
		for range 3 {
			c.signed("GET", propertiesPath, "", "Origin", "http://a.example")
			c.send("GET", "/acct/People()", "")
			c.send("GET", "/nobody/People()", "")
		}
		if got := c.store.reads.Load(); got != want {
			t.Errorf("got %d reads of the account's metadata, want %d", got, want)
		}
	}
	reads(1)
	c.want(c.signed("PUT", propertiesPath, document("<Cors>"+aRule+"</Cors>")), response{status: 202})
	reads(2) // another server may have changed another section

	// The outcome of a failed write is unknown, so the store is read again.
	c.store.failed = store.ErrOutcomeUnknown
	c.want(c.signed("PUT", propertiesPath, document(hoursOn)), response{status: 500, code: "OperationTimedOut"})
	reads(4)
	c.want(c.signed("GET", propertiesPath, ""), response{status: 200, body: bom + document(loggingOff, hoursOn, minutesOff, "<Cors>"+aRule+"</Cors>")})
}

// TestConcurrentProperties sets different sections concurrently, while other requests read:
// no section may be lost.
func TestConcurrentProperties(t *testing.T) {
	c := newClient(t)
	requests := []*http.Request{
		c.request("PUT", propertiesPath, document(hoursOn)),
		c.request("PUT", propertiesPath, document(strings.ReplaceAll(hoursOn, "HourMetrics", "MinuteMetrics"))),
		c.request("PUT", propertiesPath, document("<Cors>"+aRule+"</Cors>")),
		c.request("PUT", propertiesPath, document(strings.Replace(loggingOff, "false", "true", 1))),
		c.request("GET", propertiesPath, "", "Origin", "http://a.example"),
		c.request("OPTIONS", propertiesPath, "", "Origin", "http://a.example", "Access-Control-Request-Method", "GET"),
	}
	handler := quiet(t, c.store)
	var all sync.WaitGroup
	for _, r := range requests {
		if err := c.credential.SignRequest(r, testTime); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { serve(handler, r) })
	}
	all.Wait()
	minutesOn := strings.ReplaceAll(hoursOn, "HourMetrics", "MinuteMetrics")
	want := response{status: 200, body: bom + document(strings.Replace(loggingOff, "false", "true", 1), hoursOn, minutesOn, "<Cors>"+aRule+"</Cors>")}
	c.want(c.signed("GET", propertiesPath, ""), want)
}

// quiet returns a server of s without Observe.
func quiet(t *testing.T, s store.Store) http.Handler {
	t.Helper()
	handler, err := server.New(server.Options{
		Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: s}},
		Now:      func() time.Time { return testTime },
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}
