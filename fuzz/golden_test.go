package fuzz

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

var update = flag.Bool("update", false, "write the golden database of the present version")

// goldenDirs contain a database as written by the first release of each file version:
// sstables, a sealed log and a manifest, with all types, tombstones, metadata and a dropped
// table. Never delete one. The last one has the current versions. The one before it is of the
// first builds that wrote version 3, without timestamps of loaded files in the manifest and
// without heap units in the index of an sstable:
// git archive 16ba327 fuzz/testdata/database-v3.
var goldenDirs = []string{"testdata/database-v1", "testdata/database-v2", "testdata/database-v3-unstamped", "testdata/database-v3"}

// clock is a clock with a fixed time and no callbacks.
type clock struct{}

func (clock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (clock) AfterFunc(time.Duration, func()) (stop func() bool) { return func() bool { return true } }

func options(disk vfs.FS) engine.Options {
	return engine.Options{
		FS: disk, SegmentBytes: 64 << 10, FileBytes: 64 << 10, CacheBytes: 1 << 20,
		Testing: repeatable([]byte("golden database!")),
	}
}

// repeatable returns hooks that make runs repeatable. A new database has the given id.
func repeatable(id []byte) engine.TestHooks {
	return engine.TestHooks{Manual: true, Clock: clock{}, Random: bytes.NewReader(id)}
}

// everyType returns a property of each type, with extreme values.
func everyType(i int) edm.Properties {
	return edm.Properties{
		{Name: "Text", Value: edm.String(strings.Repeat("é😀", i%5))},
		{Name: "Bytes", Value: edm.Binary(bytes.Repeat([]byte{0, 0xFF, byte(i)}, i%4))},
		{Name: "Flag", Value: edm.Boolean(i%2 == 0)},
		{Name: "Small", Value: edm.Int32(int32(i) - 7)},
		{Name: "Large", Value: edm.Int64(int64(i) << 40)},
		{Name: "Real", Value: edm.Double(float64(i) / 8)},
		{Name: "When", Value: edm.DateTime(edm.Ticks(1<<57 + i))},
		{Name: "Id", Value: edm.GuidWords(0x0123456789ABCDEF, uint64(i))},
	}
}

// fillGolden writes the contents of the golden database.
func fillGolden(tb testing.TB, db *engine.DB) {
	tb.Helper()
	ctx := context.Background()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	put := func(table, pk, rk string, props edm.Properties) {
		tb.Helper()
		_, err := db.Apply(ctx, table, store.Op{Kind: store.OpInsertOrReplace, Entity: edm.Entity{Key: edm.Key{Partition: pk, Row: rk}, Properties: props}})
		must(err)
	}
	must(db.CreateTable(ctx, "People"))
	must(db.CreateTable(ctx, "Gone"))
	for i := range 20 {
		put("People", fmt.Sprintf("p%d", i/8), fmt.Sprintf("%03d", i), everyType(i))
	}
	put("People", "", "", edm.Properties{{Name: "Long", Value: edm.String(strings.Repeat("0123456789", 600))}})
	put("Gone", "p", "r", nil)
	must(db.Flush(ctx))
	for i := range 6 {
		put("People", "p1", fmt.Sprintf("%03d", 8+2*i), everyType(100+i))
	}
	_, err := db.Apply(ctx, "People", store.Op{Kind: store.OpDelete, Entity: edm.Entity{Key: edm.Key{Partition: "p0", Row: "003"}}, IfMatch: store.Any})
	must(err)
	must(db.DeleteTable(ctx, "Gone"))
	must(db.SetTableMeta(ctx, "people", []byte("policy")))
	must(db.Flush(ctx))
	must(db.SetAccountMeta(ctx, []byte("account")))
	put("People", "p9", "in the log", everyType(3))
	_, err = db.Apply(ctx, "People",
		store.Op{Kind: store.OpInsert, Entity: edm.Entity{Key: edm.Key{Partition: "p2", Row: "a"}, Properties: everyType(4)}},
		store.Op{Kind: store.OpDelete, Entity: edm.Entity{Key: edm.Key{Partition: "p2", Row: "016"}}, IfMatch: store.Any})
	must(err)
}

// contents returns the files of a directory.
func contents(tb testing.TB, disk vfs.FS, dir string) map[string][]byte {
	tb.Helper()
	names, err := disk.List(dir)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		f, err := disk.Open(dir + "/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		size, err := f.Size()
		if err != nil {
			tb.Fatal(err)
		}
		b := make([]byte, size)
		if n, err := f.ReadAt(b, 0); n < len(b) {
			tb.Fatal(err)
		}
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
		files[name] = b
	}
	return files
}

// newGolden returns the files of a new golden database. Its newest entities are in the log,
// which a Close whose context has ended does not flush.
func newGolden(tb testing.TB) map[string][]byte {
	tb.Helper()
	ended, cancel := context.WithCancel(tb.Context())
	cancel()
	disk := vfs.NewMem()
	db, err := engine.Open("db", options(disk))
	if err != nil {
		tb.Fatal(err)
	}
	fillGolden(tb, db)
	if err := db.CloseContext(ended); err != nil {
		tb.Fatal(err)
	}
	return contents(tb, disk, "db")
}

// goldenFiles returns the committed files of the current versions.
func goldenFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	return goldenFilesIn(tb, goldenDirs[len(goldenDirs)-1])
}

func goldenFilesIn(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		files[e.Name()] = b
	}
	return files
}

// diskOf returns a file system with files in the directory db.
func diskOf(tb testing.TB, files map[string][]byte) *vfs.Mem {
	tb.Helper()
	disk := vfs.NewMem()
	if err := disk.MkdirAll("db"); err != nil {
		tb.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := disk.Create("db/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		if len(files[name]) > 0 {
			if _, err := f.WriteAt(files[name], 0); err != nil {
				tb.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return disk
}

// state is all data that a database returns.
type state struct {
	Tables   []store.TableInfo
	Meta     map[string]string
	Account  string
	Entities map[string][]edm.Entity
}

// errInconsistent means that two ways to read a database disagree.
var errInconsistent = errors.New("inconsistent")

// stateOf reads a whole database: each table forward and backward, and each entity by its
// key. It returns an error if they disagree.
func stateOf(ctx context.Context, db store.Store) (state, error) {
	s := state{Meta: map[string]string{}, Entities: map[string][]edm.Entity{}}
	var err error
	if s.Tables, err = db.Tables(ctx, "", 0); err != nil {
		return s, err
	}
	account, err := db.AccountMeta(ctx)
	if err != nil {
		return s, err
	}
	s.Account = string(account)
	for _, t := range s.Tables {
		meta, err := db.TableMeta(ctx, t.Name)
		if err != nil {
			return s, err
		}
		s.Meta[t.Name] = string(meta)
		for e, err := range store.Entities(db.Query(ctx, t.Name, store.Query{})) {
			if err != nil {
				return s, err
			}
			s.Entities[t.Name] = append(s.Entities[t.Name], e)
		}
		if err := checkReads(ctx, db, t.Name, s.Entities[t.Name]); err != nil {
			return s, err
		}
	}
	return s, nil
}

func checkReads(ctx context.Context, db store.Store, table string, want []edm.Entity) error {
	i := len(want)
	for e, err := range store.Entities(db.Query(ctx, table, store.Query{Reverse: true})) {
		if err != nil {
			return err
		}
		if i--; i < 0 || !sameEntity(e, want[i]) {
			return fmt.Errorf("%w: %s backward: entity %d is %v", errInconsistent, table, i, e.Key)
		}
	}
	if i != 0 {
		return fmt.Errorf("%w: %s backward: %d entities fewer than forward", errInconsistent, table, i)
	}
	for _, e := range want {
		got, err := db.Get(ctx, table, e.Key)
		if errors.Is(err, store.ErrEntityNotFound) || err == nil && !sameEntity(got, e) {
			return fmt.Errorf("%w: get of %v, which a scan returns: %v, %v", errInconsistent, e.Key, got, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameEntity reports whether all bits of two entities are equal.
func sameEntity(a, b edm.Entity) bool {
	if a.Key != b.Key || a.Timestamp != b.Timestamp || len(a.Properties) != len(b.Properties) {
		return false
	}
	for i := range a.Properties {
		if a.Properties[i].Name != b.Properties[i].Name || !a.Properties[i].Value.Equal(b.Properties[i].Value) {
			return false
		}
	}
	return true
}

var compareEntities = cmp.Comparer(sameEntity)

// sortedState returns s with the properties of each entity in order of their names.
func sortedState(s state) state {
	for _, list := range s.Entities {
		for i := range list {
			list[i].Properties = slices.Clone(list[i].Properties)
			slices.SortFunc(list[i].Properties, func(a, b edm.Property) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	return s
}

// TestGoldenDatabase opens the files of all versions and compares their data with that of the
// same operations on a new database. To rewrite the files of an unreleased version, run
// go test ./fuzz -run GoldenDatabase -update.
func TestGoldenDatabase(t *testing.T) {
	if goldenDir := goldenDirs[len(goldenDirs)-1]; *update {
		if err := os.RemoveAll(goldenDir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(goldenDir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, b := range newGolden(t) {
			if err := os.WriteFile(filepath.Join(goldenDir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(files map[string][]byte) state {
		t.Helper()
		o := options(diskOf(t, files))
		db, err := engine.Open("db", o)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		report, err := db.Verify(t.Context())
		if err != nil || len(report.Findings) > 0 || len(report.Unknown) > 0 {
			t.Errorf("Verify: %+v, %v", report, err)
		}
		s, err := stateOf(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := read(newGolden(t))
	last := len(goldenDirs) - 1
	if diff := cmp.Diff(want, read(goldenFiles(t)), compareEntities); diff != "" {
		t.Errorf("%s reads differently (-want +got):\n%s", goldenDirs[last], diff)
	}
	// The builds that wrote the others stored properties in the order of the operation.
	want = sortedState(want)
	for _, dir := range goldenDirs[:last] {
		if diff := cmp.Diff(want, sortedState(read(goldenFilesIn(t, dir))), compareEntities); diff != "" {
			t.Errorf("%s reads differently (-want +got):\n%s", dir, diff)
		}
	}
}
