package pgbackend

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	vm "github.com/VictoriaMetrics/metrics"

	"github.com/tablerock-db/tablerock/store/postgres"
)

// metric is a metric that postgres.Stats has a value of.
type metric struct {
	name, kind, help string
	value            func(s *postgres.Stats) float64
}

// metrics are in the order of the page on metrics. The sizes are sampled, so those of a
// database are the same for all its servers.
var metrics = []metric{
	{"tablerock_backend_connections", "gauge", "Connections to the database.", func(s *postgres.Stats) float64 { return float64(s.Conns) }},
	{"tablerock_backend_idle_connections", "gauge", "Connections that no request uses.", func(s *postgres.Stats) float64 { return float64(s.IdleConns) }},
	{"tablerock_backend_max_connections", "gauge", "Limit of the connections.", func(s *postgres.Stats) float64 { return float64(s.MaxConns) }},
	{"tablerock_backend_round_trips_total", "counter", "Round trips to the database.", func(s *postgres.Stats) float64 { return float64(s.RoundTrips) }},
	{"tablerock_backend_retries_total", "counter", "Reads and transactions that were repeated.", func(s *postgres.Stats) float64 { return float64(s.Retries) }},
	{
		"tablerock_backend_unknown_outcomes_total", "counter", "Writes whose connection failed after the commit was sent.",
		func(s *postgres.Stats) float64 { return float64(s.UnknownOutcomes) },
	},
	{
		"tablerock_backend_failovers_total", "counter", "Changes of the primary, and its restarts.",
		func(s *postgres.Stats) float64 { return float64(s.Failovers) },
	},
	{
		"tablerock_backend_heartbeat_age_seconds", "gauge", "Time since the database acknowledged a commit; requests are refused above 5.",
		func(s *postgres.Stats) float64 { return s.Heartbeat.Seconds() },
	},
	{"tablerock_backend_live_rows", "gauge", "Entities, estimated.", func(s *postgres.Stats) float64 { return float64(s.Sample.LiveRows) }},
	{
		"tablerock_backend_dead_rows", "gauge", "Overwritten and deleted entities that vacuum has not removed, estimated.",
		func(s *postgres.Stats) float64 { return float64(s.Sample.DeadRows) },
	},
	{"tablerock_backend_table_bytes", "gauge", "Size of the entities.", func(s *postgres.Stats) float64 { return float64(s.Sample.TableBytes) }},
	{"tablerock_backend_index_bytes", "gauge", "Size of the indexes of the entities.", func(s *postgres.Stats) float64 { return float64(s.Sample.IndexBytes) }},
	{
		"tablerock_backend_new_index_bytes", "gauge", "Size of the index of the keys if it were built again, estimated.",
		func(s *postgres.Stats) float64 { return float64(s.NewIndexBytes) },
	},
	{
		"tablerock_backend_index_rebuilds_total", "counter", "Rebuilds of the index by this server.",
		func(s *postgres.Stats) float64 { return float64(s.Rebuilds) },
	},
	{
		"tablerock_backend_dropped_tables", "gauge", "Dropped tables whose entities the sweeper has not removed.",
		func(s *postgres.Stats) float64 { return float64(s.Sample.DroppedTables) },
	},
}

// Help returns the help texts of the metrics by their names.
func Help() map[string]string {
	texts := make(map[string]string)
	for _, m := range metrics {
		texts[m.name] = m.help
	}
	return texts
}

// WriteMetrics writes the metrics of the databases that are served in the text format of Prometheus.
func (s *Set) WriteMetrics(w io.Writer) {
	list := s.servedMembers()
	all := make([]postgres.Stats, len(list))
	for i, m := range list {
		all[i] = m.db.Stats()
	}
	for _, f := range metrics {
		vm.WriteMetadataIfNeeded(w, f.name, f.kind)
		for i := range all {
			fmt.Fprintf(w, "%s{database=%q} %s\n", f.name, list[i].url, strconv.FormatFloat(f.value(&all[i]), 'g', -1, 64))
		}
	}
}

// Conns returns the most connections that the open databases have at the same time, also those that are not served.
func (s *Set) Conns() int {
	n := 0
	for _, m := range s.members() {
		n += m.db.Stats().MaxConns + postgres.OtherConns
	}
	return n
}

// Pool returns the figures of the databases that are served as JSON: an array of postgres.Stats, or null.
func (s *Set) Pool() json.RawMessage {
	var list []postgres.Stats
	for _, m := range s.servedMembers() {
		list = append(list, m.db.Stats())
	}
	text, _ := json.Marshal(list) // numbers have JSON
	return text
}
