package sstable

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// loadable returns entries as a loaded file has them, of seq 0.
func loadable(n int) (entries []entry) {
	for i := range n {
		e := newEntry("p", fmt.Sprintf("r%05d", i), 0, false, edm.Properties{{Name: "a", Value: edm.Int64(int64(i))}})
		e.ts = 5000
		entries = append(entries, e)
	}
	return entries
}

// TestLoadedFile gives the entries of a file the sequence number and the Timestamp of the
// options, in gets, scans and filters, also when a head is laid out by rows, and when the
// cache keeps none.
func TestLoadedFile(t *testing.T) {
	for _, cacheBytes := range []int64{1 << 20, 0} {
		testLoadedFile(t, cacheBytes)
	}
}

func testLoadedFile(t *testing.T, cacheBytes int64) {
	t.Helper()
	const seq, stamp = 77, edm.Ticks(1 << 59)
	entries := loadable(2000)
	o := writerOptions()
	o.GroupBytes = 2000
	f, _ := write(t, o, entries)
	ro := readerOptions(cache.New(cacheBytes))
	ro.Seq, ro.Stamp = seq, stamp
	r, err := Open(f, ro)
	if err != nil {
		t.Fatal(err)
	}
	var row Row
	for range 2 * arrangeAfter {
		got, kind, ok, err := r.Get(entries[70].user, codec.KeyHash(entries[70].user), seq, &row)
		if got != seq || kind != codec.KindPut || !ok || err != nil || row.Timestamp() != stamp {
			t.Fatalf("got sequence %d, kind %d, found %v, error %v", got, kind, ok, err)
		}
		if v, _ := row.Lookup("a"); v.Word() != 70 {
			t.Fatalf("got value %d", v.Word())
		}
	}
	if _, _, ok, err := r.Get(entries[70].user, codec.KeyHash(entries[70].user), seq-1, &row); ok || err != nil {
		t.Fatalf("an older snapshot sees the row: %v, %v", ok, err)
	}
	row.Release()
	for _, snap := range []uint64{seq, seq - 1} {
		it, n := r.NewIterator(IterOptions{Snapshot: snap}), 0
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
			if _, s, _ := codec.SplitTrailer(it.Key()); s != seq || it.Row().Timestamp() != stamp {
				t.Fatalf("entry %d has sequence %d and Timestamp %v", n, s, it.Row().Timestamp())
			}
			n++
		}
		if err := it.Close(); err != nil || (n == len(entries)) != (snap == seq) || n != 0 && snap != seq {
			t.Fatalf("snapshot %d sees %d entries, error %v", snap, n, err)
		}
	}
	for _, c := range []struct {
		node *predicate.Node
		want int // rows that the bounds do not exclude
	}{
		{predicate.NewCompare(edm.TimestampName, predicate.Eq, edm.DateTime(stamp)), len(entries)},
		{predicate.NewCompare(edm.TimestampName, predicate.Lt, edm.DateTime(stamp)), 0},
	} {
		it, n := r.NewIterator(IterOptions{Snapshot: seq, Prune: predicate.Compile(c.node)}), 0
		for span, ok := it.SpanGE(nil); ok; span, ok = it.SpanAfter(&span) {
			if !it.Excludes(&span) {
				n += span.Rows
			}
		}
		if err := it.Close(); err != nil || n != c.want {
			t.Errorf("%v: %d rows are not excluded, want %d, error %v", c.node, n, c.want, err)
		}
	}
	if err := r.Verify(context.Background()); err != nil {
		t.Errorf("verify: %v", err)
	}
}

// TestNotALoadedFile opens files of other entries as loaded ones.
func TestNotALoadedFile(t *testing.T) {
	numbered := loadable(100)
	numbered[50] = newEntry("p", "r00050", 3, false, numbered[50].props)
	numbered[50].ts = 5000
	stamped := loadable(100)
	stamped[50].ts++
	deleted := loadable(100)
	deleted[50] = newEntry("p", "r00050", 0, true, nil)
	for name, c := range map[string]struct {
		entries []entry
		read    bool // a scan finds it too
	}{"sequence": {numbered, true}, "Timestamp": {stamped, true}, "tombstone": {deleted, false}} {
		f, _ := write(t, writerOptions(), c.entries)
		ro := readerOptions(cache.New(1 << 20))
		ro.Seq, ro.Stamp = 77, 1<<59
		r, err := Open(f, ro)
		if err != nil {
			t.Fatal(err)
		}
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
		}
		if err := it.Close(); c.read && !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: a scan returns %v", name, err)
		}
		if err := r.Verify(context.Background()); !c.read && !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: verify returns %v", name, err)
		}
	}
}
