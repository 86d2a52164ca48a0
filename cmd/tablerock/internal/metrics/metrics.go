// Package metrics counts the requests of a server, and writes its metrics in the text format
// of Prometheus: those of requests, of databases of the engine, and those that other packages
// add.
//
// The methods of Metrics may be called concurrently.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	vm "github.com/VictoriaMetrics/metrics"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
)

// Metrics are the metrics of one server.
type Metrics struct {
	set      *vm.Set
	inFlight atomic.Int64

	mu        sync.RWMutex
	help      map[string]string     // texts by the names of metrics; package vm writes none; +checklocks:mu
	series    map[outcome]*series   // +checklocks:mu
	durations map[string]*histogram // by operation; +checklocks:mu
}

// outcome is the set of labels that a request is counted under. The values of its labels
// come from the server, never from the request, so their number is limited.
type outcome struct {
	operation string
	status    int
	code      string
}

// series are the metrics of an outcome. Finding them by their labels for each request
// would cost four times as much as counting.
type series struct {
	requests, examined, returned *vm.Counter
	duration                     *histogram
}

// Database is an open database of the engine.
type Database struct {
	Account string
	DB      *engine.DB
}

// ownHelp are the help texts of the metrics of requests and connections, and of readOnly.
var ownHelp = map[string]string{
	"tablerock_requests_total": "Requests, by operation, status of the response, or 499 if the client did not wait for it, " +
		"and the protocol's error code.",
	"tablerock_request_duration_seconds": "Time from the request's headers to the end of its response.",
	"tablerock_rows_examined_total":      "Rows that were examined.",
	"tablerock_rows_returned_total":      "Rows that were returned.",
	"tablerock_requests_in_flight":       "Requests that are being answered.",
	"tablerock_build_info":               "1, with the version as a label.",
	"tablerock_connections":              "Connections of clients that are open.",
	readOnly:                             "1 after a failed write, until the server is started again: the database accepts no writes.",
}

// New returns the metrics of a server of the given version, which has no databases yet.
func New(version string) *Metrics {
	vm.ExposeMetadata(true)
	m := &Metrics{set: vm.NewSet(), help: maps.Clone(ownHelp), series: make(map[outcome]*series), durations: make(map[string]*histogram)}
	m.set.NewGauge(fmt.Sprintf("tablerock_build_info{version=%q}", version), func() float64 { return 1 })
	m.set.NewGauge("tablerock_requests_in_flight", func() float64 { return float64(m.InFlight()) })
	m.set.RegisterMetricsWriter(m.writeDurations)
	return m
}

// InFlight returns the number of requests that are being answered.
func (m *Metrics) InFlight() int64 { return m.inFlight.Load() }

// Observe counts one request.
func (m *Metrics) Observe(e server.Event) {
	o := outcome{e.Operation, e.Status, e.Code}
	m.mu.RLock()
	s := m.series[o]
	m.mu.RUnlock()
	if s == nil {
		s = m.add(o)
	}
	s.requests.Inc()
	s.duration.observe(e.Duration)
	s.examined.AddInt64(int64(e.Examined))
	s.returned.AddInt64(int64(e.Returned))
}

// add adds the metrics of an outcome unless they exist, and returns them.
func (m *Metrics) add(o outcome) *series {
	operation := o.operation
	if operation == "" {
		operation = "none"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	duration := m.durations[operation]
	if duration == nil {
		duration = &histogram{}
		m.durations[operation] = duration
	}
	s := &series{
		requests: m.set.GetOrCreateCounter(fmt.Sprintf("tablerock_requests_total{code=%q,operation=%q,status=\"%d\"}", o.code, operation, o.status)),
		examined: m.set.GetOrCreateCounter(fmt.Sprintf("tablerock_rows_examined_total{operation=%q}", operation)),
		returned: m.set.GetOrCreateCounter(fmt.Sprintf("tablerock_rows_returned_total{operation=%q}", operation)),
		duration: duration,
	}
	m.series[o] = s
	return s
}

// CountInFlight counts the requests that h is answering.
func (m *Metrics) CountInFlight(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.inFlight.Add(1)
		defer m.inFlight.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// Watch adds the metrics of the databases that are served, and the number of connections. Call
// it once.
func (m *Metrics) Watch(databases func() []Database, connections func() int) {
	m.set.NewGauge("tablerock_connections", func() float64 { return float64(connections()) })
	help := make(map[string]string)
	for _, f := range engineMetrics {
		help["tablerock_engine_"+f.name] = f.help
	}
	for _, f := range cacheMetrics {
		help[f.name] = f.help
	}
	m.Add(help, func(w io.Writer) { writeEngine(w, databases()) })
}

// Add adds metrics that write writes in the text format, with their help texts by name.
func (m *Metrics) Add(help map[string]string, write func(io.Writer)) {
	m.mu.Lock()
	maps.Copy(m.help, help)
	m.mu.Unlock()
	m.set.RegisterMetricsWriter(write)
}

// Handler returns the handler of /metrics.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		m.set.WritePrometheus(&b)
		vm.WriteProcessMetrics(&b)
		vm.WriteFDMetrics(&b)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(m.addHelp(b.String())) // an error means that the client is gone
	})
}

// addHelp completes the HELP lines of a text that package vm has written, which have no
// help text. It removes those of metrics without one.
func (m *Metrics) addHelp(text string) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]byte, 0, 2*len(text))
	for line := range strings.Lines(text) {
		name, is := strings.CutPrefix(line, "# HELP ")
		if !is {
			out = append(out, line...)
			continue
		}
		name = strings.TrimSpace(name)
		if help := m.help[name]; help != "" {
			out = fmt.Appendf(out, "# HELP %s %s\n", name, help)
		}
	}
	return out
}

// engineMetric is a metric that engine.Stats has a value of.
type engineMetric struct {
	name, kind, help string
	value            func(*engine.Stats) float64
}

// engineMetrics are the metrics of each database.
var engineMetrics = []engineMetric{
	{"tables", "gauge", "Tables.", func(s *engine.Stats) float64 { return float64(s.Tables) }},
	{"entities", "gauge", "Entities, estimated where some were overwritten or deleted.", func(s *engine.Stats) float64 { return float64(s.Entities) }},
	{"sstables", "gauge", "Sstables.", func(s *engine.Stats) float64 { return float64(s.SSTables) }},
	{"sstable_bytes", "gauge", "Size of the sstables.", func(s *engine.Stats) float64 { return float64(s.SSTableBytes) }},
	{"wal_bytes", "gauge", "Size of the log's records that are not in sstables.", func(s *engine.Stats) float64 { return float64(s.WALBytes) }},
	{"memtable_bytes", "gauge", "Memory of memtables and of the log's copy in memory.", func(s *engine.Stats) float64 { return float64(s.MemtableBytes) }},
	{"last_sequence", "gauge", "Sequence number of the newest write.", func(s *engine.Stats) float64 { return float64(s.LastSequence) }},
	{"runs_max", "gauge", "Largest number of sorted runs that a read of one key searches.", func(s *engine.Stats) float64 { return float64(s.RunsMax) }},
	{"space_amp", "gauge", "Size of the sstables divided by the size of their live data.", func(s *engine.Stats) float64 { return s.SpaceAmp }},
	{"log_written_bytes_total", "counter", "Bytes written to the log.", func(s *engine.Stats) float64 { return float64(s.LogBytesWritten) }},
	{"log_syncs_total", "counter", "Syncs of files of the log.", func(s *engine.Stats) float64 { return float64(s.LogSyncs) }},
	{"flushes_total", "counter", "Flushes of memtables.", func(s *engine.Stats) float64 { return float64(s.Flushes) }},
	{"flush_written_bytes_total", "counter", "Size of the sstables that flushes wrote.", func(s *engine.Stats) float64 { return float64(s.FlushBytesWritten) }},
	{"compactions_total", "counter", "Compactions.", func(s *engine.Stats) float64 { return float64(s.Compactions) }},
	{
		"compaction_read_bytes_total", "counter", "Bytes of sstables that compactions read, estimated.",
		func(s *engine.Stats) float64 { return float64(s.CompactionBytesRead) },
	},
	{
		"compaction_written_bytes_total", "counter", "Size of the sstables that compactions wrote.",
		func(s *engine.Stats) float64 { return float64(s.CompactionBytesWritten) },
	},
	{"reserve_bytes", "gauge", "Disk space that is kept for a full disk.", func(s *engine.Stats) float64 { return float64(s.ReserveBytes) }},
	{"disk_full", "gauge", "1 while only deletes are accepted, because the disk is full.", func(s *engine.Stats) float64 {
		if s.DiskFull {
			return 1
		}
		return 0
	}},
	{"archive_waiting", "gauge", "Chunks of the log that wait for the archive.", func(s *engine.Stats) float64 { return float64(s.ArchiveWaiting) }},
	{
		"archive_waiting_bytes", "gauge", "Size of the files that wait for the archive.",
		func(s *engine.Stats) float64 { return float64(s.ArchiveWaitingBytes) },
	},
	{"archive_failures_total", "counter", "Failed attempts to archive a chunk.", func(s *engine.Stats) float64 { return float64(s.ArchiveFailures) }},
	{
		"archive_last_timestamp_seconds", "gauge", "Timestamp of the last write that was archived, in Unix time; 0 if none was since the start.",
		func(s *engine.Stats) float64 {
			if s.Archived == 0 {
				return 0
			}
			return float64(s.Archived.Time().UnixMilli()) / 1000
		},
	},
	{"stalls_total", "counter", "Times that writers waited for flushes or compactions.", func(s *engine.Stats) float64 { return float64(s.Stalls) }},
	{"stall_seconds_total", "counter", "Time that writers waited for flushes or compactions.", func(s *engine.Stats) float64 { return s.StallTime.Seconds() }},
}

// cacheMetrics are the metrics of the block cache, which all databases share.
var cacheMetrics = []engineMetric{
	{"tablerock_cache_hits_total", "counter", "Blocks found in the block cache.", func(s *engine.Stats) float64 { return float64(s.CacheHits) }},
	{"tablerock_cache_misses_total", "counter", "Blocks not found in the block cache.", func(s *engine.Stats) float64 { return float64(s.CacheMisses) }},
}

// readOnly is the metric that tells whether a database accepts writes.
const readOnly = "tablerock_engine_read_only"

// writeEngine writes the metrics of the databases that are open.
func writeEngine(w io.Writer, dbs []Database) {
	var names []string
	var all []engine.Stats
	for _, d := range dbs {
		if stats, err := d.DB.Stats(); err == nil {
			names, all = append(names, d.Account), append(all, stats)
		}
	}
	for _, f := range engineMetrics {
		name := "tablerock_engine_" + f.name
		vm.WriteMetadataIfNeeded(w, name, f.kind)
		for i := range all {
			fmt.Fprintf(w, "%s{account=%q} %s\n", name, names[i], formatFloat(f.value(&all[i])))
		}
	}
	vm.WriteMetadataIfNeeded(w, readOnly, "gauge")
	for _, d := range dbs {
		value := 0
		if d.DB.Failure() != nil {
			value = 1
		}
		fmt.Fprintf(w, "%s{account=%q} %d\n", readOnly, d.Account, value)
	}
	if len(all) == 0 {
		return
	}
	for _, f := range cacheMetrics {
		vm.WriteMetadataIfNeeded(w, f.name, f.kind)
		fmt.Fprintf(w, "%s %s\n", f.name, formatFloat(f.value(&all[0])))
	}
}

// formatFloat returns v in the shortest form that Prometheus reads.
func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
