package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/server"
)

// TestObserve counts requests of several outcomes, each more than once.
func TestObserve(t *testing.T) {
	m := newMetrics("test")
	for range 2 {
		for _, e := range []server.Event{
			{Operation: "GetEntity", Status: 200, Examined: 1, Returned: 1, Duration: time.Second},
			{Operation: "GetEntity", Status: 404, Code: "ResourceNotFound", Examined: 1, Duration: time.Second},
			{Operation: "QueryEntities", Status: 200, Examined: 70, Returned: 7},
			{Status: 400, Code: "InvalidUri"},
			{Status: 400, Code: "InvalidInput"},
		} {
			m.observe(e)
		}
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, line := range []string{
		`tablerock_requests_total{code="",operation="GetEntity",status="200"} 2`,
		`tablerock_requests_total{code="ResourceNotFound",operation="GetEntity",status="404"} 2`,
		`tablerock_requests_total{code="",operation="QueryEntities",status="200"} 2`,
		`tablerock_requests_total{code="InvalidUri",operation="none",status="400"} 2`,
		`tablerock_requests_total{code="InvalidInput",operation="none",status="400"} 2`,
		`tablerock_request_duration_seconds_sum{operation="GetEntity"} 4`,
		`tablerock_request_duration_seconds_count{operation="none"} 4`,
		`tablerock_rows_examined_total{operation="GetEntity"} 4`,
		`tablerock_rows_examined_total{operation="QueryEntities"} 140`,
		`tablerock_rows_returned_total{operation="GetEntity"} 2`,
		`tablerock_rows_returned_total{operation="QueryEntities"} 14`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no line %s in\n%s", line, w.Body)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	m := newMetrics("test")
	e := server.Event{Operation: "GetEntity", Status: 200, Examined: 1, Returned: 1, Duration: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.observe(e)
	}
}
