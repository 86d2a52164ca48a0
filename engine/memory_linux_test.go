package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// mapped returns the size of the address space of the process.
func mapped(t *testing.T) int64 { return status(t, "VmSize:") }

// resident returns the resident memory of the process.
func resident(t *testing.T) int64 { return status(t, "VmRSS:") }

func status(t *testing.T, name string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), name)
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Skip(err)
	}
	return kib << 10
}

// TestOpenAndCloseLeakNoMemory opens a database repeatedly, for writing and for
// reading. The memory of every segment must be freed.
func TestOpenAndCloseLeakNoMemory(t *testing.T) {
	if arena.Poisons() {
		t.Skip("builds with the race detector keep segments on the heap, and poison is written to all of them")
	}
	const segment, rounds = 256 << 20, 8
	dir := t.TempDir()
	o := engine.Options{SegmentBytes: segment, Testing: engine.TestHooks{Manual: true}, CacheBytes: 1 << 20}
	cycle := func(i int, readOnly bool) {
		t.Helper()
		o.ReadOnly = readOnly
		db := mustOpen(t, dir, o)
		if !readOnly {
			apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprint(i), 1, 10)))
		}
		check(t, "Close", closeAtOnce(db))
	}
	db := mustOpen(t, dir, o)
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	check(t, "Close", closeAtOnce(db))
	before := mapped(t)
	for i := range rounds {
		cycle(i, false)
		cycle(i, true)
	}
	if grown := mapped(t) - before; grown > rounds*segment {
		t.Errorf("%d opens and closes left %d MiB mapped", 2*rounds, grown>>20)
	}
}

// aloneChild names the environment variable of a process that runs one test.
const aloneChild = "ENGINE_TEST_ALONE"

// alone reports whether the calling test is alone in its process. If not, it runs the test in a process
// of its own: beside what other tests still hold, the garbage collector lets the heap grow by as much.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneChild) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.count=1", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), aloneChild+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// TestResidentMemory loads, gets and scans several times as many bytes as
// Options.MemoryBytes. The process may grow by that and 64 MiB.
func TestResidentMemory(t *testing.T) {
	if arena.Poisons() || testing.Short() {
		t.Skip("builds with the race detector keep segments on the Go heap, poison makes free memory resident, and -short leaves this out")
	}
	if !alone(t) {
		return
	}
	const budget, partitions, rows = 32 << 20, 250, 1000
	debug.FreeOSMemory()
	before := resident(t)
	peak := before
	look := func(what string) {
		t.Helper()
		now := resident(t)
		peak = max(peak, now)
		if grown := now - before; grown > budget+64<<20 {
			t.Fatalf("%s: the process grew by %d MiB, MemoryBytes is %d MiB", what, grown>>20, budget>>20)
		}
	}
	db := mustOpen(t, t.TempDir(), engine.Options{MemoryBytes: budget, NoSync: true})
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	rng := rand.NewChaCha8([32]byte{1})
	filler := make([]byte, 400)
	ops := make([]store.Op, 100)
	for p := range partitions {
		for from := 0; from < rows; from += len(ops) {
			for i := range ops {
				rng.Read(filler)
				props := edm.Properties{{Name: "N", Value: edm.Int64(int64(i))}, {Name: "B", Value: edm.Binary(append([]byte(nil), filler...))}}
				ops[i] = store.InsertOrReplace(edm.Entity{Key: edm.Key{Partition: fmt.Sprint(p), Row: fmt.Sprintf("%06d", from+i)}, Properties: props})
			}
			apply(t, db, ops...)
		}
		look("load")
	}
	check(t, "Flush", db.Flush(t.Context()))
	pick := rand.New(rng)
	for i := range 30_000 {
		key := edm.Key{Partition: fmt.Sprint(pick.IntN(partitions)), Row: fmt.Sprintf("%06d", pick.IntN(rows))}
		if err := db.View(t.Context(), table, key, func(edm.Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			look("get")
		}
	}
	n := 0
	c := db.Query(t.Context(), table, store.Query{})
	for c.Next() {
		if n++; n%10_000 == 0 {
			look("scan")
		}
	}
	check(t, "scan", c.Err())
	check(t, "Close", c.Close())
	if n != partitions*rows {
		t.Errorf("%d entities, want %d", n, partitions*rows)
	}
	stats, err := db.Stats()
	check(t, "Stats", err)
	t.Logf("%d MiB of sstables, the process grew by %d MiB at most", stats.SSTableBytes>>20, (peak-before)>>20)
	if stats.SSTableBytes < 3*budget {
		t.Errorf("%d bytes of sstables are too few for the test", stats.SSTableBytes)
	}
}

// TestResidentMemoryOfSmallDatabases opens many databases of a few rows. Each may take little
// memory, although segments have huge pages.
func TestResidentMemoryOfSmallDatabases(t *testing.T) {
	if race.Enabled {
		t.Skip("race builds keep segments on the heap")
	}
	if !alone(t) {
		return
	}
	const databases = 30
	debug.FreeOSMemory()
	before := resident(t)
	for range databases {
		db := mustCreate(t, engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}})
		apply(t, db, store.InsertOrReplace(entity("p", "r", 1, 10)))
		defer db.Close()
	}
	grown := resident(t) - before
	t.Logf("%d databases take %d KiB each", databases, grown>>10/databases)
	if grown > databases<<20 {
		t.Error("want at most 1 MiB each")
	}
}

// TestSegmentsAreResidentAhead appends to segments until less than 1 MiB of their memory is left
// in its huge page. The next page must become resident before a record is in it.
func TestSegmentsAreResidentAhead(t *testing.T) {
	if race.Enabled {
		t.Skip("race builds keep segments on the heap")
	}
	if !alone(t) {
		return
	}
	const databases, record, page = 20, 50 << 10, 2 << 20
	var dbs []*engine.DB
	for range databases {
		db := mustOpen(t, t.TempDir(), engine.Options{NoSync: true, Testing: engine.TestHooks{Manual: true}})
		defer db.Close()
		check(t, "CreateTable", db.CreateTable(t.Context(), table))
		dbs = append(dbs, db)
	}
	appendTo := func(records int) {
		for _, db := range dbs {
			for range records {
				apply(t, db, store.InsertOrReplace(entity("p", "r", 1, record)))
			}
		}
		debug.FreeOSMemory()
	}
	appendTo(18)
	before := resident(t)
	appendTo(6) // 1.2 MB in all
	for wait := time.Now().Add(5 * time.Minute); resident(t)-before < databases*page; runtime.Gosched() {
		if time.Now().After(wait) {
			t.Fatalf("%d KiB of each segment became resident, want 2 MiB and more", (resident(t)-before)>>10/databases)
		}
	}
}
