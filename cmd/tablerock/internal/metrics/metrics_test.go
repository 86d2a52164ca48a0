package metrics

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestObserve counts requests of several outcomes, each more than once.
func TestObserve(t *testing.T) {
	m := New("test")
	for range 2 {
		for _, e := range []server.Event{
			{Operation: "GetEntity", Status: 200, Examined: 1, Returned: 1, Duration: time.Second},
			{Operation: "GetEntity", Status: 404, Code: "ResourceNotFound", Examined: 1, Duration: time.Second},
			{Operation: "QueryEntities", Status: 200, Examined: 70, Returned: 7},
			{Status: 400, Code: "InvalidUri"},
			{Status: 400, Code: "InvalidInput"},
		} {
			m.Observe(e)
		}
	}
	got := scrape(t, m)
	for _, line := range []string{
		`tablerock_requests_total{code="",operation="GetEntity",status="200"} 2`,
		`tablerock_requests_total{code="ResourceNotFound",operation="GetEntity",status="404"} 2`,
		`tablerock_requests_total{code="",operation="QueryEntities",status="200"} 2`,
		`tablerock_requests_total{code="InvalidUri",operation="none",status="400"} 2`,
		`tablerock_requests_total{code="InvalidInput",operation="none",status="400"} 2`,
		`# HELP tablerock_requests_total ` + ownHelp["tablerock_requests_total"],
		`# TYPE tablerock_requests_total counter`,
		`# HELP tablerock_request_duration_seconds ` + ownHelp["tablerock_request_duration_seconds"],
		`# TYPE tablerock_request_duration_seconds histogram`,
		`tablerock_request_duration_seconds_bucket{operation="GetEntity",le="0.5"} 0`,
		`tablerock_request_duration_seconds_bucket{operation="GetEntity",le="1"} 4`,
		`tablerock_request_duration_seconds_bucket{operation="GetEntity",le="+Inf"} 4`,
		`tablerock_request_duration_seconds_bucket{operation="QueryEntities",le="0.0001"} 2`,
		`tablerock_request_duration_seconds_sum{operation="GetEntity"} 4`,
		`tablerock_request_duration_seconds_count{operation="none"} 4`,
		`tablerock_rows_examined_total{operation="GetEntity"} 4`,
		`tablerock_rows_examined_total{operation="QueryEntities"} 140`,
		`tablerock_rows_returned_total{operation="GetEntity"} 2`,
		`tablerock_rows_returned_total{operation="QueryEntities"} 14`,
	} {
		if strings.Count(got, line+"\n") != 1 {
			t.Errorf("not one line %s in\n%s", line, got)
		}
	}
}

// scrape returns the response of /metrics.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// metricLine is a sample or a HELP or TYPE line of Prometheus's text format.
var metricLine = regexp.MustCompile(`^(# HELP [a-z_]+ .+|# TYPE [a-z_]+ (counter|gauge|histogram|summary)|[a-z_]+(\{.*\})? [-+.\dInfe]+)$`)

// TestMetricsFormat checks the syntax of every line, that each metric has one type, and
// that ours have a help text.
func TestMetricsFormat(t *testing.T) {
	m := New(`1.0 "quoted"`)
	m.Observe(server.Event{Operation: "GetEntity", Status: 200})
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(t.Context(), "Table"); err != nil {
		t.Fatal(err)
	}
	m.Watch(func() []Database { return []Database{{"first", db}, {"second", db}} }, func() int { return 3 })
	m.Add(pgbackend.Help(), pgbackend.NewSet(postgres.Options{}).WriteMetrics)
	got := scrape(t, m)
	types := map[string]int{}
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		if !metricLine.MatchString(line) {
			t.Errorf("line %q is no line of the format", line)
		}
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, _, _ := strings.Cut(rest, " ")
			types[name]++
			if types[name] > 1 {
				t.Errorf("metric %s has several types", name)
			}
			if strings.HasPrefix(name, "tablerock_") && m.help[name] == "" {
				t.Errorf("metric %s has no help text", name)
			}
		}
	}
	for name := range m.help {
		if types[name] == 0 {
			t.Errorf("metric %s is missing", name)
		}
	}
	for _, line := range []string{
		`tablerock_connections 3`, `tablerock_engine_tables{account="second"} 1`, `tablerock_engine_flushes_total{account="first"} 0`,
		`tablerock_cache_hits_total 0`,
	} {
		if strings.Count(got, line+"\n") != 1 {
			t.Errorf("not one line %s in\n%s", line, got)
		}
	}
	want := []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "go_gc_duration_seconds", "go_info"}
	if runtime.GOOS == "linux" {
		want = append(want, "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds")
	}
	for _, name := range want {
		if types[name] != 1 {
			t.Errorf("metric %s is missing", name)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	m := New("test")
	e := server.Event{Operation: "GetEntity", Status: 200, Examined: 1, Returned: 1, Duration: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(e)
	}
}
