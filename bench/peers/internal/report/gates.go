package report

import (
	"fmt"
	"io"

	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// gate is a goal for a workload.
type gate struct {
	row      string
	workload string
	shape    string
	engine   string // ours if empty
	// ratio is the least ratio to the best of peers, by throughput and by CPU time.
	ratio float64
	peers []string
	// share is the share of the rate of the raw disk that suffices instead, unless 0.
	share float64
	// durable rows are compared by throughput alone, on disks with a sync below
	// slowSync, else by CPU time alone.
	durable bool
	// nanos is the greatest CPU time of an operation, millis the greatest median
	// latency, amp the greatest write amplification. 0 is no goal.
	nanos, millis, amp float64
	// space is the greatest ratio of the size of the tables to that of the smallest peer.
	space float64
}

const (
	grid, singles = "grid", "singles"
	merged        = "/until=merged"
	diskGet       = "get/key=present/from=disk/readers=1"
	// quiet is the number of processors that other processes may use in a comparison
	// by throughput.
	quiet = 0.2
	// slowSync is the time of a raw fdatasync in microseconds.
	slowSync = 200
	// kept is the share of an earlier ratio that must remain.
	kept = 0.95
	// matched is the share of the entities that the filters match. Each match may cost 120 ns
	// more, and 250 ns with eight runs.
	matched = 0.01
)

// compressed are the peers with a block cache. bbolt reads through the page cache, which
// no setting limits, and its Open reads the whole file.
var compressed = []string{"pebble", "badger", "goleveldb"}

func gates() []gate {
	list := []gate{
		{row: "ordered load", workload: "load/order=sorted", ratio: 1.8},
		{row: "ordered load until merged, to Pebble", workload: "load/order=sorted" + merged, ratio: 1.6, peers: []string{"pebble"}},
		{row: "ordered load until merged, to goleveldb", workload: "load/order=sorted" + merged, ratio: 1.1, peers: []string{"goleveldb"}},
		{row: "random load", workload: "load/order=random", ratio: 2.2},
		{row: "random load until merged, to Pebble", workload: "load/order=random" + merged, ratio: 1.6, peers: []string{"pebble"}},
		{row: "random load until merged, to goleveldb", workload: "load/order=random" + merged, ratio: 1.1, peers: []string{"goleveldb"}},
		{row: "one entity per partition, ordered", workload: "load/order=sorted", shape: singles, ratio: 1.2},
		{row: "durable insert, 1 writer", workload: "insert/writers=1", ratio: 1.4, share: 0.9, durable: true},
		{row: "durable insert, 64 writers", workload: "insert/writers=64", ratio: 1.6, durable: true},
		{row: "durable batch of 100, 1 writer", workload: "batch/writers=1", ratio: 1.3, durable: true},
		{row: "durable batch of 100, 16 writers", workload: "batch/writers=16", ratio: 1.5, durable: true},
		{row: "hot get, 1 reader", workload: "get/key=present/readers=1", ratio: 1.6},
		{row: "hot get, 2 readers", workload: "get/key=present/readers=2", ratio: 2},
		{row: "missing get", workload: "get/key=missing/readers=1", ratio: 4},
		{row: "partition scan, every property", workload: "scan/range=partition", ratio: 1.5},
		{row: "get, cache of 32 MiB, 1 reader", workload: "get/key=present/cache=32MiB/readers=1", ratio: 1.4, peers: compressed},
		{row: "get, cache of 32 MiB, 16 readers", workload: "get/key=present/cache=32MiB/readers=16", ratio: 1.4, peers: compressed},
		{row: "get from disk, 1 reader", workload: diskGet, ratio: 1.2, share: 0.85, peers: compressed},
		{row: "get from disk, 16 readers", workload: "get/key=present/from=disk/readers=16", ratio: 1.4, peers: compressed},
		{row: "partition scan, cache of 32 MiB", workload: "scan/range=partition/cache=32MiB", ratio: 1.4, peers: compressed},
		{row: "table scan from disk", workload: "scan/range=table/from=disk", ratio: 1.4, peers: compressed},
		{row: "tables", workload: diskGet, space: 0.92, peers: compressed},
		{row: "tables, CompressSmall", workload: diskGet, space: 0.78, engine: small, peers: compressed},
		{row: "get from disk, CompressSmall", workload: diskGet, ratio: 0.8, engine: small, peers: []string{"pebble"}},
		{row: "overwrite three times", workload: "overwrite/passes=3", ratio: kept * 1.49},
		{row: "write amplification of that", workload: "overwrite/passes=3" + merged, amp: 2.2},
		{row: "reopen from the log", workload: "reopen/from=log", ratio: kept * 4.1},
		{row: "reopen after a clean close", workload: "reopen/from=close", millis: 10},
		{row: "reopen after a load and a clean close", workload: "reopen/from=load", millis: 10},
		{row: "reopen, 100,000 fresh entities", workload: "reopen/from=fresh", millis: 10},
		{row: "step that reads nothing, one run", workload: "step/runs=1", nanos: 20},
		{row: "step that reads nothing, two runs", workload: "step/runs=2", nanos: 20},
		{row: "filter on a Double over eight runs", workload: "filter/type=Double/runs=8", nanos: 20 + 250*matched},
	}
	for _, mix := range []struct {
		name string
		now  float64
	}{{"A", 1.65}, {"B", 2.5}, {"C", 2.6}, {"E", 1.53}, {"F", 2}} {
		list = append(list, gate{row: "YCSB " + mix.name, workload: "ycsb/mix=" + mix.name, ratio: kept * mix.now})
	}
	for _, t := range []struct {
		article, name string
		nanos         float64
	}{{"an", "Int32", 10}, {"an", "Int64", 10}, {"a", "Double", 10}, {"a", "DateTime", 10}, {"a", "String", 20}} {
		row := fmt.Sprintf("filter on %s %s", t.article, t.name)
		list = append(list, gate{row: row, workload: "filter/type=" + t.name, nanos: t.nanos + 120*matched})
	}
	for i := range list {
		if list[i].shape == "" {
			list[i].shape = grid
		}
		if list[i].engine == "" {
			list[i].engine = ours
		}
		if list[i].peers == nil {
			list[i].peers = goPeers
		}
	}
	return list
}

// verdict is a gate with figures.
type verdict struct {
	gate
	figure string  // ours
	fast   string  // the best peer by throughput, and its figure
	cheap  string  // the best peer by CPU time, and its figure
	ops    float64 // ratios, 0 without
	cpu    float64
	goal   string
	met    bool
	note   string
}

// verdicts compares all gates that have results, at the main size of a file.
func verdicts(f *results.File) []verdict {
	m, size := mediansOf(f), mainSize(f)
	var out []verdict
	for _, g := range gates() {
		us, ok := m.of(g.workload, g.engine, size, g.shape)
		if !ok {
			continue
		}
		switch {
		case g.ratio > 0:
			if v, ok := m.compare(g, us, size); ok {
				out = append(out, v)
			}
		case g.space > 0:
			if v, ok := m.compareSpace(g, us, size); ok {
				out = append(out, v)
			}
		case g.amp > 0:
			out = append(out, verdict{
				gate: g, figure: fmt.Sprintf("%.2f", us.WriteAmp), goal: fmt.Sprintf("at most %.1f", g.amp), met: us.WriteAmp <= g.amp,
			})
		case g.millis > 0:
			out = append(out, verdict{
				gate: g, figure: fmt.Sprintf("%.1f ms", us.P50/1e3), goal: fmt.Sprintf("at most %.0f ms", g.millis), met: us.P50/1e3 <= g.millis,
			})
		default:
			out = append(out, verdict{
				gate: g, figure: fmt.Sprintf("%.1f ns of CPU", us.CPUMicros*1e3), goal: fmt.Sprintf("at most %.1f ns", g.nanos),
				met: us.CPUMicros*1e3 <= g.nanos,
			})
		}
	}
	return out
}

// compare compares a workload with its best peers.
func (m medians) compare(g gate, us results.Result, size int) (verdict, bool) {
	fast, cheap, ok := m.best(g.workload, g.peers, size, g.shape)
	if !ok {
		return verdict{}, false
	}
	v := verdict{
		gate: g, figure: fmt.Sprintf("%s/s, %s us", number(us.OpsPerSec), number(us.CPUMicros)),
		fast: fmt.Sprintf("%s %s/s", fast.Engine, number(fast.OpsPerSec)), cheap: fmt.Sprintf("%s %s us", cheap.Engine, number(cheap.CPUMicros)),
		ops: us.OpsPerSec / fast.OpsPerSec, cpu: cheap.CPUMicros / us.CPUMicros, goal: fmt.Sprintf("%.2f", g.ratio),
	}
	busy := max(us.ForeignCores, fast.ForeignCores, cheap.ForeignCores)
	byOps, byCPU := v.ops >= g.ratio, v.cpu >= g.ratio
	disk, known := m.of(g.workload, raw, size, g.shape)
	if g.share > 0 && known {
		share := us.OpsPerSec / disk.OpsPerSec
		v.note = fmt.Sprintf("%.0f %% of raw, of %.0f", 100*share, 100*g.share)
		if share >= g.share {
			v.met = true
			return v, true
		}
	}
	sync, measured := m.of("insert/writers=1", raw, size, grid)
	switch {
	case g.durable && measured && sync.P50 < slowSync && busy < quiet:
		v.met = byOps
	case busy >= quiet:
		v.met = byCPU
		v.note = joined(v.note, fmt.Sprintf("busy %.1f", busy))
	case g.durable:
		v.met = byCPU
	default:
		v.met = byOps && byCPU
	}
	return v, true
}

// compareSpace compares the size of the tables with that of the smallest peer.
func (m medians) compareSpace(g gate, us results.Result, size int) (verdict, bool) {
	best := results.Result{}
	for _, e := range g.peers {
		if r, ok := m.of(g.workload, e, size, g.shape); ok && r.TableBytes > 0 && (best.TableBytes == 0 || r.TableBytes < best.TableBytes) {
			best = r
		}
	}
	if best.TableBytes == 0 || us.TableBytes == 0 {
		return verdict{}, false
	}
	ratio := float64(us.TableBytes) / float64(best.TableBytes)
	return verdict{
		gate: g, figure: number(float64(us.TableBytes)/1e6) + " MB", fast: fmt.Sprintf("%s %s MB", best.Engine, number(float64(best.TableBytes)/1e6)),
		ops: ratio, goal: fmt.Sprintf("at most %.2f", g.space), met: ratio <= g.space,
	}, true
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// Gates prints all goals with the figures of a file, and returns how many are missed.
func Gates(out io.Writer, f *results.File) (missed int) {
	row := tableOf(out, "work", "Tablerock", "best by rate", "best by CPU", "rate", "CPU", "goal", "met", "note")
	for _, v := range verdicts(f) {
		ratio := func(x float64) string {
			if x == 0 {
				return ""
			}
			return fmt.Sprintf("%.2f", x)
		}
		met := "yes"
		if !v.met {
			met = "**no**"
			missed++
		}
		row(v.row, v.figure, v.fast, v.cheap, ratio(v.ops), ratio(v.cpu), v.goal, met, v.note)
	}
	return missed
}

// isLoss reports whether a peer in Go beats Tablerock at a workload by CPU time.
func (m medians) isLoss(workload string, size int, shape string) (peer string, ratio float64, loss bool) {
	us, ok := m.of(workload, ours, size, shape)
	_, cheap, has := m.best(workload, goPeers, size, shape)
	if !ok || !has || cheap.CPUMicros >= us.CPUMicros {
		return "", 0, false
	}
	return cheap.Engine, us.CPUMicros / cheap.CPUMicros, true
}
