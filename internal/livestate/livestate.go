// Package livestate describes the state of a server and of its engines at one time, as plain
// data for the pages of package explorer.
package livestate

import "time"

// Engine is the state of the engine of one account.
type Engine struct {
	Account      string         `json:"account"`
	Figures      map[string]any `json:"figures"`   // the fields of engine.Stats, by name
	Segments     []Segment      `json:"segments"`  // of the log, oldest first
	Memtables    []Memtable     `json:"memtables"` // oldest first
	Tiers        []Tier         `json:"tiers"`     // newest first
	Jobs         []Work         `json:"jobs"`      // the last flushes and compactions, newest first
	SegmentBytes int64          `json:"segmentBytes"`
	Failure      string         `json:"failure,omitempty"` // the error because of which the database accepts no writes
}

// Segment is a segment of the log.
type Segment struct {
	Number uint64 `json:"number"`
	Bytes  int64  `json:"bytes"`
	State  string `json:"state"` // active, frozen until the flush of its memtable, or flushing
}

// Memtable is the memtable of a segment.
type Memtable struct {
	Segment uint64 `json:"segment"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
	State   string `json:"state"` // as that of its Segment
}

// Tier is a tier of sorted runs.
type Tier struct {
	Name string `json:"name"` // tier 0, tier 1, ..., bottom
	Runs []Run  `json:"runs"` // newest first
}

// Run is a sorted run.
type Run struct {
	Number     uint64 `json:"number"`
	SSTables   int    `json:"sstables"`
	Bytes      int64  `json:"bytes"`
	Moving     int64  `json:"moving"` // the bytes of sstables that a compaction reads
	Entries    uint64 `json:"entries"`
	Tombstones uint64 `json:"tombstones"`
}

// Work is a flush or a compaction.
type Work struct {
	Kind    string    `json:"kind"`  // flush, compaction, or load while one is running
	State   string    `json:"state"` // running or done
	What    string    `json:"what"`
	At      time.Time `json:"at"` // of the end, or of the begin if it is running
	Ms      float64   `json:"ms"`
	Inputs  int       `json:"inputs"` // memtables or sstables
	Outputs int       `json:"outputs"`
	Read    int64     `json:"read"` // bytes
	Written int64     `json:"written"`
}

// Cache is the state of the block cache, which all engines share.
type Cache struct {
	Hits   uint64 `json:"hits"`
	Misses uint64 `json:"misses"`
	Bytes  int64  `json:"bytes"` // its limit
}

// Requests counts requests since the start.
type Requests struct {
	Count       uint64  `json:"count"`
	Reads       uint64  `json:"reads"`
	Writes      uint64  `json:"writes"`
	Failures    uint64  `json:"failures"` // with a status from 400 on
	Examined    uint64  `json:"examined"`
	Returned    uint64  `json:"returned"`
	InFlight    int64   `json:"inFlight"`
	Connections int     `json:"connections"`
	Latency     Latency `json:"latency"` // of the last minute
}

// Latency has percentiles of durations in milliseconds: the upper bound of the bucket that
// has the percentile.
type Latency struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Request is a request that was answered.
type Request struct {
	At        time.Time `json:"at"` // of its end
	Operation string    `json:"operation"`
	Account   string    `json:"account"`
	Table     string    `json:"table"`
	Status    int       `json:"status"`
	Code      string    `json:"code"`
	Ms        float64   `json:"ms"`
	Examined  int       `json:"examined"`
	Returned  int       `json:"returned"`
	ID        string    `json:"id"`
	Filter    string    `json:"filter,omitempty"` // of a query
}

// Shape is a set of slow queries that differ in their constants only.
type Shape struct {
	Account  string    `json:"account"`
	Table    string    `json:"table"`
	Shape    string    `json:"shape"`   // the filter with ? for each constant
	Example  string    `json:"example"` // the filter of the slowest one
	Count    uint64    `json:"count"`
	TotalMs  float64   `json:"totalMs"`
	MaxMs    float64   `json:"maxMs"`
	Examined uint64    `json:"examined"`
	Returned uint64    `json:"returned"`
	Last     time.Time `json:"last"`
	Scan     string    `json:"scan"` // as Explanation.Scan
	Warning  string    `json:"warning"`
	Cure     string    `json:"cure"`
}
