package serve

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
)

// metrics are the figures of one server.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	examined *prometheus.CounterVec
	returned *prometheus.CounterVec
	inFlight prometheus.Gauge

	mu    sync.RWMutex
	known map[outcome]*series // +checklocks:mu
}

// outcome is what requests have in common that are counted together. All of it is
// the server's own words, so that there are few.
type outcome struct {
	operation string
	status    int
	code      string
}

// series are the figures of an outcome. To find them by their labels each time would
// take four times as long as to count.
type series struct {
	requests, examined, returned prometheus.Counter
	duration                     prometheus.Observer
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), known: make(map[outcome]*series),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tablerock_requests_total", Help: "Requests, by operation, status of the answer, or 499 if the client did not wait for it, and the protocol's error code.",
		}, []string{"operation", "status", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tablerock_request_duration_seconds", Help: "Time from the request's headers to the end of its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
		examined: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tablerock_rows_examined_total", Help: "Rows that were looked at.",
		}, []string{"operation"}),
		returned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tablerock_rows_returned_total", Help: "Rows that were part of an answer.",
		}, []string{"operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tablerock_requests_in_flight", Help: "Requests that are being answered.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tablerock_build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.requests, m.duration, m.examined, m.returned, m.inFlight, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// observe counts one request.
func (m *metrics) observe(e server.Event) {
	o := outcome{e.Operation, e.Status, e.Code}
	m.mu.RLock()
	s := m.known[o]
	m.mu.RUnlock()
	if s == nil {
		s = m.find(o)
	}
	s.requests.Inc()
	s.duration.Observe(e.Duration.Seconds())
	s.examined.Add(float64(e.Examined))
	s.returned.Add(float64(e.Returned))
}

// find finds the figures of an outcome that is new.
func (m *metrics) find(o outcome) *series {
	operation := o.operation
	if operation == "" {
		operation = "none"
	}
	s := &series{
		requests: m.requests.WithLabelValues(operation, strconv.Itoa(o.status), o.code),
		duration: m.duration.WithLabelValues(operation),
		examined: m.examined.WithLabelValues(operation),
		returned: m.returned.WithLabelValues(operation),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[o] = s
	return s
}

// around counts the requests that are within h.
func (m *metrics) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.inFlight.Inc()
		defer m.inFlight.Dec()
		h.ServeHTTP(w, r)
	})
}

// watch adds the figures of the databases and the number of connections.
func (m *metrics) watch(dbs databases, connections func() int) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tablerock_connections", Help: "Connections of clients that are open.",
		}, func() float64 { return float64(connections()) }),
		engineCollector{dbs},
	)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// engineFigures are what each database tells of itself.
var engineFigures = []struct {
	desc  *prometheus.Desc
	value func(*engine.Stats) float64
}{
	{figure("tables", "Tables."), func(s *engine.Stats) float64 { return float64(s.Tables) }},
	{figure("entities", "Entities, estimated where some were overwritten or deleted."), func(s *engine.Stats) float64 { return float64(s.Entities) }},
	{figure("sstables", "Sorted files."), func(s *engine.Stats) float64 { return float64(s.SSTables) }},
	{figure("sstable_bytes", "Size of the sorted files."), func(s *engine.Stats) float64 { return float64(s.SSTableBytes) }},
	{figure("wal_bytes", "Records in the log that are not in sorted files."), func(s *engine.Stats) float64 { return float64(s.WALBytes) }},
	{figure("memtable_bytes", "Memory of memtables and of the log's mirror."), func(s *engine.Stats) float64 { return float64(s.MemtableBytes) }},
	{figure("last_sequence", "Sequence number of the newest write."), func(s *engine.Stats) float64 { return float64(s.LastSequence) }},
	{figure("runs_max", "Most sorted runs that a read has to look into."), func(s *engine.Stats) float64 { return float64(s.RunsMax) }},
	{figure("space_amp", "Size of the sorted files over that of what is live in them."), func(s *engine.Stats) float64 { return s.SpaceAmp }},
}

func figure(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tablerock_engine_"+name, help, []string{"account"}, nil)
}

// engineCollector asks the databases when it is asked.
type engineCollector struct{ dbs databases }

// Describe names all figures.
func (engineCollector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range engineFigures {
		out <- f.desc
	}
}

// Collect tells those of the databases that are open.
func (c engineCollector) Collect(out chan<- prometheus.Metric) {
	for _, d := range c.dbs {
		stats, err := d.db.Stats()
		if err != nil {
			continue
		}
		for _, f := range engineFigures {
			out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, f.value(&stats), d.name)
		}
	}
}
