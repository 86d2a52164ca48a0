package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collecting is a collector of OpenTelemetry.
type collecting struct {
	*httptest.Server
	mu       sync.Mutex
	resource []*common.KeyValue
	spans    map[string]*spans.Span // by name
	raw      strings.Builder        // the bodies of all requests
	headers  http.Header
}

func newCollector(t *testing.T) *collecting {
	c := &collecting{spans: map[string]*spans.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		c.headers = r.Header
		for _, rs := range request.ResourceSpans {
			c.resource = rs.Resource.Attributes
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					c.spans[s.Name] = s
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// attribute returns an attribute as text.
func attribute(list []*common.KeyValue, key string) string {
	for _, kv := range list {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// TestSpans sends requests to a server with a collector, and compares the spans.
func TestSpans(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=tables")
	c := newCollector(t)
	r := start(t, "--in-memory", "--otlp-endpoint", c.URL)
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`)
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Orders", `{"PartitionKey":"hidden","RowKey":"hidden","Name":"hidden"}`)
	r.want(t, http.StatusOK, http.MethodGet, r.url+"/Orders()?$filter=Name%20eq%20'hidden'", "",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.want(t, http.StatusNotFound, http.MethodDelete, r.url+"/Tables('None')", "")
	r.stop()

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 4 {
		t.Fatalf("%d spans: %v", len(c.spans), c.spans)
	}
	query := c.spans["QueryEntities"]
	if got := fmt.Sprintf("%x-%x", query.GetTraceId(), query.GetParentSpanId()); got != "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331" {
		t.Errorf("the trace and the parent of the query are %s", got)
	}
	if query.Kind != spans.Span_SPAN_KIND_SERVER || query.EndTimeUnixNano <= query.StartTimeUnixNano {
		t.Errorf("the span of the query is %v", query)
	}
	for key, want := range map[string]string{
		"http.response.status_code": "int_value:200", "tablerock.operation": `string_value:"QueryEntities"`,
		"tablerock.table": `string_value:"Orders"`, "tablerock.account": `string_value:"devstoreaccount1"`,
		"tablerock.rows.examined": "int_value:1", "tablerock.rows.returned": "int_value:1",
	} {
		if got := attribute(query.Attributes, key); got != want {
			t.Errorf("the attribute %s is %s, want %s", key, got, want)
		}
	}
	if got := attribute(c.spans["DeleteTable"].GetAttributes(), "tablerock.code"); got != `string_value:"ResourceNotFound"` {
		t.Errorf("the code of the failure is %s", got)
	}
	for key, want := range map[string]string{"service.name": `string_value:"tablerock"`, "service.version": `string_value:"test"`} {
		if got := attribute(c.resource, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if c.headers.Get("X-Team") != "tables" {
		t.Errorf("OTEL_EXPORTER_OTLP_HEADERS is ignored: %v", c.headers)
	}
	for _, secret := range []string{"hidden", developmentKey, r.dir} {
		if strings.Contains(c.raw.String(), secret) {
			t.Errorf("the spans have %q", secret)
		}
	}
}

// TestSpansOfFaults checks that failures on purpose have spans, and that a collector that is
// gone does not stop the server.
func TestSpansOfFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.json")
	if err := os.WriteFile(file, []byte(`[{"operation": "QueryTables", "answer": "ServerBusy", "probability": 1}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCollector(t)
	r := start(t, "--in-memory", "--otlp-endpoint", c.URL+"/v1/traces", "--faults", file)
	r.want(t, http.StatusServiceUnavailable, http.MethodGet, r.url+"/Tables", "")
	r.stop()
	c.mu.Lock()
	if s := c.spans["QueryTables"]; s.GetStatus().GetCode() != spans.Status_STATUS_CODE_ERROR || s.GetStatus().GetMessage() != "ServerBusy" {
		t.Errorf("the span is %v", s)
	}
	c.mu.Unlock()
	c.Close()
	r = start(t, "--in-memory", "--otlp-endpoint", c.URL)
	r.want(t, http.StatusOK, http.MethodGet, r.url+"/Tables", "")
	r.stop()
	if !strings.Contains(r.stderr.String(), "spans were not sent") {
		t.Errorf("the log is %s", r.stderr)
	}
}

// TestEndpoints refuses endpoints that are no URL of a collector.
func TestEndpoints(t *testing.T) {
	for _, text := range []string{"127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "http://user:secret@127.0.0.1:4318", "http://127.0.0.1:4318?key=secret"} {
		var c Config
		c.Flags(pflag.NewFlagSet("serve", pflag.ContinueOnError)) // sets the defaults
		c.OTLPEndpoint = text
		if err := c.check(); err == nil || !strings.HasPrefix(err.Error(), "--otlp-endpoint: give ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
