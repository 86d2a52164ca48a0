package engine_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestUnreadableBigValue fails each read of a file in turn, without a cache. A reader
// must get a whole entity or an error, and a compaction must not lose a value that
// it could not read. The values make the group too long to be read at once.
func TestUnreadableBigValue(t *testing.T) {
	bad := errors.New("bad sector")
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	o := manual(fsys)
	o.CacheBytes = 1
	db := mustCreate(t, o)
	key := edm.Key{Partition: "p", Row: "r"}
	value := make([]byte, 60_000)
	rand.NewChaCha8([32]byte{}).Read(value) // which s2 does not compress
	apply(t, db, store.Insert(edm.Entity{Key: key, Properties: edm.Properties{
		{Name: "N", Value: edm.Int64(1)},
		{Name: "Big", Value: edm.Binary(value)},
		{Name: "Other", Value: edm.Binary(value)},
	}}))
	check(t, "Flush", db.Flush(t.Context()))
	whole := func(r edm.Row) bool {
		v, _ := r.Lookup("Big")
		again, _ := r.Lookup("Big")
		return bytes.Equal(v.Bytes(), value) && bytes.Equal(again.Bytes(), value)
	}
	merge := store.Merge(edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int64(2)}}}, store.Any)
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"View", func() error {
			return db.View(t.Context(), table, key, func(r edm.Row) error {
				if !whole(r) {
					t.Error("View returns an entity without its big value")
				}
				return nil
			})
		}},
		{"Query", func() error {
			cur := db.Query(t.Context(), table, store.Query{})
			defer cur.Close()
			for cur.Next() {
				if !whole(cur.Row()) {
					t.Error("Query returns an entity without its big value")
				}
			}
			return cur.Err()
		}},
		{"Merge", func() error {
			_, err := db.Apply(t.Context(), table, merge)
			return err
		}},
	} {
		failed := 0
		for n := uint64(1); ; n++ {
			sst := func(op vfs.Op) bool { return op.Kind == "read" && strings.HasSuffix(op.Name, ".sst") }
			fsys.SetRule(errorfs.FailNth(n, sst, errorfs.Fault{Err: bad}, false))
			err := c.do()
			if err == nil {
				break
			}
			if failed++; !errors.Is(err, bad) {
				t.Errorf("%s, read %d: %v, want %v", c.name, n, err, bad)
			}
		}
		if failed < 3 {
			t.Errorf("%s failed %d times; head, heap and big value are 3 reads", c.name, failed)
		}
		fsys.SetRule(nil)
	}
	e, err := db.Get(t.Context(), table, key)
	check(t, "Get", err)
	if !bytes.Equal(e.Properties.Get("Big").Bytes(), value) || !e.Properties.Get("N").Equal(edm.Int64(2)) {
		t.Errorf("after the merge: N is %v, Big has %d bytes", e.Properties.Get("N"), len(e.Properties.Get("Big").Bytes()))
	}
}

// TestWritesReadNoValues has each read fail but the first one, that of the head of a row group.
// Only a merge needs the values of the entity that it writes to. The values make the groups too
// long to be read at once.
func TestWritesReadNoValues(t *testing.T) {
	bad := errors.New("bad sector")
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	o := manual(fsys)
	o.CacheBytes = 1
	db := mustCreate(t, o)
	value := make([]byte, 60_000)
	rand.NewChaCha8([32]byte{}).Read(value)
	with := func(row string) edm.Entity {
		return edm.Entity{Key: edm.Key{Partition: "p", Row: row}, Properties: edm.Properties{
			{Name: "Big", Value: edm.Binary(value)},
			{Name: "Other", Value: edm.Binary(value)},
		}}
	}
	for _, row := range []string{"a", "b", "c", "d"} {
		apply(t, db, store.Insert(with(row)))
	}
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "View", db.View(t.Context(), table, with("a").Key, func(edm.Row) error { return nil })) // opens the file
	etag := func(row string) (tag edm.ETag) {
		check(t, "View", db.View(t.Context(), table, with(row).Key, func(r edm.Row) error {
			tag = edm.ETag(edm.AppendETag(nil, r.Timestamp()))
			return nil
		}))
		return tag
	}
	for _, c := range []struct {
		name string
		op   store.Op
		want error
	}{
		{"insert of an existing entity", store.Insert(with("a")), store.ErrEntityExists},
		{"delete of another version", store.Delete(with("a").Key, `W/"datetime'2020-01-01T00%3A00%3A00Z'"`), store.ErrPrecondition},
		{"merge", store.Merge(with("b"), store.Any), bad},
		{"insert or merge", store.InsertOrMerge(with("b")), bad},
		{"delete", store.Delete(with("b").Key, store.Any), nil},
		{"delete of the version", store.Delete(with("c").Key, etag("c")), nil},
		{"replace of the version", store.Replace(with("d"), etag("d")), nil},
	} {
		reads := 0
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			if op.Kind != "read" || !strings.HasSuffix(op.Name, ".sst") {
				return nil
			}
			if reads++; reads == 1 {
				return nil
			}
			return &errorfs.Fault{Err: bad}
		})
		_, err := db.Apply(t.Context(), table, c.op)
		fsys.SetRule(nil)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		if reads == 0 || c.want != bad && reads > 1 {
			t.Errorf("%s: %d reads", c.name, reads)
		}
	}
}

// TestLongestValuesDoNotAllocate gets Binaries of the greatest length, which s2 does not compress,
// from files with more of them than the cache keeps.
func TestLongestValuesDoNotAllocate(t *testing.T) {
	const rows = 400
	o := manual(vfs.NewMem())
	o.CacheBytes = 8 << 20
	db := mustCreate(t, o)
	value := make([]byte, edm.MaxBinaryBytes)
	random := rand.NewChaCha8([32]byte{})
	keys := make([]edm.Key, rows)
	for i := range keys {
		random.Read(value)
		keys[i] = edm.Key{Partition: "p", Row: strconv.Itoa(i)}
		apply(t, db, store.Insert(edm.Entity{Key: keys[i], Properties: edm.Properties{{Name: "Big", Value: edm.Binary(value)}}}))
	}
	check(t, "Flush", db.Flush(t.Context()))
	get := func() {
		for _, key := range keys {
			check(t, "View", db.View(t.Context(), table, key, func(edm.Row) error { return nil }))
		}
	}
	get()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	get()
	runtime.ReadMemStats(&after)
	// With the race detector, a sync.Pool drops a quarter of what it gets.
	if got := (after.TotalAlloc - before.TotalAlloc) / rows; got > edm.MaxBinaryBytes/2 {
		t.Errorf("a get of a value of %d bytes allocates %d bytes", len(value), got)
	}
}
