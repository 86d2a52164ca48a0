package engine_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// openChild names the environment variable that makes the test binary open a
// database, print the result, and wait for the end of its input.
const openChild = "ENGINE_TEST_OPEN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(openChild); dir != "" {
		db, err := engine.Open(dir, engine.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("open")
		_, _ = os.Stdin.Read(make([]byte, 1))
		_ = db.Close()
		return
	}
	goleak.VerifyTestMain(m)
}

// table is the table that most tests use.
const table = "Things"

// small returns options with which little data fills segments, sstables and tiers.
func small(fsys vfs.FS) engine.Options {
	return engine.Options{FS: fsys, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 1 << 20}
}

// manual is small without a background goroutine.
func manual(fsys vfs.FS) engine.Options {
	o := small(fsys)
	o.Testing.Manual = true
	return o
}

// stride returns 1, or n with -short: a test that would try everything tries each n-th then.
// The stage race of .ci/run has -short, because the race detector makes all of it ten times
// slower; the stage test tries everything.
func stride(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

func mustOpen(tb testing.TB, dir string, o engine.Options) *engine.DB {
	tb.Helper()
	db, err := engine.Open(dir, o)
	if err != nil {
		tb.Fatalf("Open(%q): %v", dir, err)
	}
	tb.Cleanup(func() { _ = db.Close() }) // a second Close if the test has closed it
	return db
}

// mustCreate opens a new database that has the table.
func mustCreate(tb testing.TB, o engine.Options) *engine.DB {
	tb.Helper()
	db := mustOpen(tb, "db", o)
	check(tb, "CreateTable", db.CreateTable(tb.Context(), table))
	return db
}

// closeAtOnce closes db and leaves what is not flushed in the log.
func closeAtOnce(db *engine.DB) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return db.CloseContext(ctx)
}

func check(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// entity returns an entity of about size bytes.
func entity(partition, row string, n int64, size int) edm.Entity {
	return edm.Entity{
		Key: edm.Key{Partition: partition, Row: row},
		Properties: edm.Properties{
			{Name: "N", Value: edm.Int64(n)},
			{Name: "Filler", Value: edm.Binary([]byte(strings.Repeat("x", size)))},
		},
	}
}

func apply(tb testing.TB, s store.Store, ops ...store.Op) []store.Result {
	tb.Helper()
	results, err := s.Apply(tb.Context(), table, ops...)
	check(tb, "Apply", err)
	return results
}

// fill puts n entities of about size bytes into partition, with N from 0 on.
func fill(tb testing.TB, s store.Store, partition string, n, size int) {
	tb.Helper()
	for i := range n {
		apply(tb, s, store.InsertOrReplace(entity(partition, fmt.Sprintf("%06d", i), int64(i), size)))
	}
}

// querier is a DB or a Snapshot.
type querier interface {
	Query(ctx context.Context, table string, q store.Query) store.Cursor
}

// dump lists every entity of the table: keys, time stamps and N.
func dump(tb testing.TB, s querier, q store.Query) []string {
	tb.Helper()
	var out []string
	for e, err := range store.Entities(s.Query(tb.Context(), table, q)) {
		if err != nil {
			tb.Fatalf("query %+v: %v", q, err)
		}
		out = append(out, fmt.Sprintf("%s/%s %v %v", e.Key.Partition, e.Key.Row, e.Timestamp, e.Properties.Get("N")))
	}
	return out
}

// files returns the names in dir that end in ext.
func files(tb testing.TB, fsys vfs.FS, dir, ext string) []string {
	tb.Helper()
	names, err := fsys.List(dir)
	check(tb, "List", err)
	var out []string
	for _, name := range names {
		if strings.HasSuffix(name, ext) {
			out = append(out, name)
		}
	}
	return out
}

func writeFile(tb testing.TB, fsys vfs.FS, name string, b []byte) {
	tb.Helper()
	f, err := fsys.Create(name)
	check(tb, "Create", err)
	_, err = f.WriteAt(b, 0)
	check(tb, "WriteAt", err)
	check(tb, "Sync", f.Sync())
	check(tb, "Close", f.Close())
	check(tb, "SyncDir", fsys.SyncDir(path.Dir(name)))
}

func readFile(tb testing.TB, fsys vfs.FS, name string) []byte {
	tb.Helper()
	b, err := vfs.ReadFile(fsys, name, 64<<20)
	check(tb, "ReadFile", err)
	return b
}

// treeOf describes everything in dir.
func treeOf(tb testing.TB, fsys vfs.FS, dir string) string {
	tb.Helper()
	s, err := vfs.Dump(fsys, dir)
	check(tb, "Dump", err)
	return s
}

// drain does background work until there is none.
func drain(tb testing.TB, db *engine.DB) {
	tb.Helper()
	for {
		worked, err := db.Step(tb.Context())
		check(tb, "Step", err)
		if !worked {
			return
		}
	}
}
