package bench

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
)

// Workload is one kind of work.
type Workload struct {
	// Name has the form key=value/key=value, with the operation in front.
	Name string
	// Op is the unit of operations: an entity, a batch, a get, a reopen.
	Op string
	// Step is the unit of latencies.
	Step string
	// Durable makes each write wait for stable storage.
	Durable bool
	// ReadOnly workloads use the prepared database in place, others a copy.
	ReadOnly bool
	// Parallel is the number of concurrent readers or writers.
	Parallel int
	// Start is the state of the database before the workload.
	Start Start
	// CacheBytes is the size of the block cache, if the workload sets it.
	CacheBytes int64
	// Cold evicts the database from the page cache before it is opened.
	Cold bool

	bulk  bool     // needs a BulkDB
	match edm.Type // of the property to filter on
	opens bool     // run opens the database
	warm  func(r *Run, w Workload) error
	// without lists the shapes that the workload does not support.
	without []string
	run     func(r *Run, w Workload, ops int) error
	// ops returns the number of operations to measure for n entities.
	ops func(n int) int
	// least is the least number of entities.
	least int
}

// Fits reports whether w supports n entities in the named shape.
func (w Workload) Fits(shape string, n int) bool {
	return n >= w.least && !slices.Contains(w.without, shape)
}

// Supports reports whether w has a meaning for a store.
func (w Workload) Supports(s Store) bool {
	b, ok := s.(interface{ HasBulk() bool })
	return (w.Start != Logged || s.HasLog()) && (!w.bulk || ok && b.HasBulk())
}

// Ops returns the number of operations of w to measure for n entities.
func (w Workload) Ops(n int) int { return max(1, w.ops(n)) }

// sampleEvery is the number of short operations for each timed one: reading the clock
// costs a tenth of an operation.
const sampleEvery = 16

// Workloads returns all workloads in the order of reports.
func Workloads() []Workload {
	return slices.Concat(writes(), queues(), gets(), scans(), filters(), mixes(), reopens())
}

// atMost returns a function for Workload.ops: n, up to a limit.
func atMost(limit int) func(int) int { return func(n int) int { return min(n, limit) } }

// times returns a function for Workload.ops.
func times(n int) func(int) int { return func(int) int { return n } }

func writes() []Workload {
	inBatches := func(limit int) func(int) int { return func(n int) int { return min(n/batchLen, limit) } }
	every := func(n int) int { return n }
	return []Workload{
		{Name: "load/order=sorted", Op: "entity", Step: "100 entities", Parallel: 1, run: load(true, (*Run).put), ops: every},
		{Name: "load/order=random", Op: "entity", Step: "100 entities", Parallel: 1, run: load(false, (*Run).put), ops: every},
		{Name: "load/by=bulk/order=sorted", Op: "entity", Step: "load", Parallel: 1, bulk: true, run: load(true, (*Run).putBulk), ops: every},
		{Name: "load/by=bulk/order=random", Op: "entity", Step: "load", Parallel: 1, bulk: true, run: load(false, (*Run).putBulk), ops: every},
		{Name: "insert/writers=1", Op: "entity", Step: "entity", Durable: true, Parallel: 1, run: insert, ops: atMost(20_000)},
		{Name: "insert/writers=64", Op: "entity", Step: "entity", Durable: true, Parallel: 64, run: insert, ops: atMost(200_000)},
		{
			Name: "batch/writers=1", Op: "batch of 100", Step: "batch", Durable: true, Parallel: 1,
			run: batches, ops: inBatches(5_000), without: []string{Singles}, least: batchLen,
		},
		{
			Name: "batch/writers=16", Op: "batch of 100", Step: "batch", Durable: true, Parallel: 16,
			run: batches, ops: inBatches(10_000), without: []string{Singles}, least: batchLen,
		},
		{
			Name: "batch/order=random/writers=1", Op: "batch of 100", Step: "batch", Durable: true, Parallel: 1,
			run: scattered, ops: inBatches(5_000), least: batchLen,
		},
		{
			Name: "overwrite/passes=3", Op: "entity", Step: "100 entities", Parallel: 1, Start: Loaded,
			run: overwrite, ops: func(n int) int { return 3 * n }, least: batchLen,
		},
	}
}

// queues take entities from the start of the table: they read a page and delete its entities.
func queues() []Workload {
	one := Workload{Name: "queue/page=1", Op: "entity", Step: "page", Parallel: 1, Start: Loaded, run: queue(1), ops: atMost(20_000)}
	pages := one
	pages.Name, pages.run, pages.ops = "queue/page=100", queue(batchLen), atMost(200_000)
	return []Workload{one, pages}
}

// Sizes of the block cache of workloads whose data does not fit.
const (
	tinyCache   = 8 << 20
	smallCache  = 32 << 20
	middleCache = 128 << 20
)

// coldGets is the number of gets from disk for n entities: few, so that most blocks are
// read for the first time.
func coldGets(n int) int { return min(max(n/250, 40), 20_000) }

func gets() []Workload {
	const many, uncached = 500_000, 200_000
	get := func(name string, readers int, cache int64, ops int) Workload {
		return Workload{
			Name: name, Op: "get", Step: "get", Parallel: readers, ReadOnly: true, Start: Loaded,
			CacheBytes: cache, warm: warmGets, run: lookups(false), ops: times(ops),
		}
	}
	cold := func(name string, readers int) Workload {
		w := get(name, readers, smallCache, 0)
		w.Cold, w.warm, w.ops = true, nil, coldGets
		return w
	}
	missing := get("get/key=missing/readers=1", 1, 0, many)
	missing.run = lookups(true)
	return []Workload{
		get("get/key=present/readers=1", 1, 0, many),
		get("get/key=present/readers=2", 2, 0, many),
		get("get/key=present/readers=16", 16, 0, many),
		missing,
		get("get/key=present/cache=8MiB/readers=1", 1, tinyCache, uncached),
		get("get/key=present/cache=32MiB/readers=1", 1, smallCache, uncached),
		get("get/key=present/cache=32MiB/readers=16", 16, smallCache, uncached),
		get("get/key=present/cache=128MiB/readers=1", 1, middleCache, uncached),
		cold("get/key=present/from=disk/readers=1", 1),
		cold("get/key=present/from=disk/readers=16", 16),
	}
}

// passes returns the number of entities of 5 scans of n entities, or of fewer.
func passes(n int) int { return max(1, min(5, 10_000_000/n)) * n }

func scans() []Workload {
	scan := func(name, step string, run func(*Run, Workload, int) error) Workload {
		return Workload{
			Name: name, Op: "entity", Step: step, Parallel: 1, ReadOnly: true, Start: Loaded,
			warm: warmScan, run: run, ops: passes,
		}
	}
	partitions := scan("scan/range=partition", "partition", scanPartitions)
	partitions.without = []string{Whole}
	small := partitions
	small.Name, small.CacheBytes = "scan/range=partition/cache=32MiB", smallCache
	smallTable := scan("scan/range=table/cache=32MiB", "table", scanTable)
	smallTable.CacheBytes = smallCache
	disk := scan("scan/range=table/from=disk", "table", scanTable)
	disk.CacheBytes, disk.Cold, disk.warm, disk.ops = smallCache, true, nil, func(n int) int { return n }
	one := scan("step/runs=1", "table", stepTable)
	two := scan("step/runs=2", "table", stepTable)
	two.Start = TwoRuns
	return []Workload{partitions, scan("scan/range=table", "table", scanTable), small, smallTable, disk, one, two}
}

func filters() []Workload {
	var list []Workload
	filter := Workload{
		Op: "entity examined", Step: "table", Parallel: 1, ReadOnly: true, Start: Loaded,
		warm: warmScan, run: scanTable, ops: passes,
	}
	for _, t := range MatchedTypes() {
		w := filter
		w.Name, w.match = "filter/type="+t.String()[len("Edm."):], t
		list = append(list, w)
	}
	eight := filter
	eight.Name, eight.match, eight.Start = "filter/type=Double/runs=8", edm.TypeDouble, EightRuns
	return append(list, eight)
}

func reopens() []Workload {
	// A reopen changes the database, so each one has its own copy.
	again := func(name string, s Start, n int) Workload {
		return Workload{
			Name: name, Op: "reopen", Step: "reopen", Parallel: 1, Start: s,
			opens: true, run: reopen, ops: times(n),
		}
	}
	const often = 5
	fresh := again("reopen/from=fresh", Fresh, often)
	fresh.least = freshLen
	list := []Workload{
		again("reopen/from=log", Logged, 1), again("reopen/from=close", Closed, often), again("reopen/from=load", Written, often), fresh,
	}
	for i := range list {
		list[i].without = []string{Singles}
	}
	return list
}
