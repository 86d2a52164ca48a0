package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// nextColumns is NextColumns if byColumns is set, else nil.
func nextColumns(c store.ColumnCursor, byColumns bool) store.Columns {
	if !byColumns {
		return nil
	}
	return c.NextColumns()
}

// TestFilterBesideFewRows filters a file of many groups beside a few newer rows and tombstones, in
// a memtable and in another file: groups between these are selected from together, and they are not.
func TestFilterBesideFewRows(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 6000
	seed := testSeed(t)
	for round := range uint64(12 / stride(4)) {
		rnd := rand.New(rand.NewPCG(seed, round))
		db := flushedRows(t, rows, 4<<20)
		check(t, "Compact", db.Compact(t.Context()))
		numbers := map[int]int{} // by row: N
		for i := range rows {
			numbers[i] = i % 7
		}
		for part := range 2 {
			from := rnd.IntN(rows)
			for range 1 + rnd.IntN(4) {
				i := from + rnd.IntN(rows-from)
				if rnd.IntN(3) == 0 {
					_, err := db.Apply(t.Context(), table, store.Delete(edm.Key{Partition: "p", Row: fmt.Sprintf("%05d", i)}, store.Any))
					if _, has := numbers[i]; has || !errors.Is(err, store.ErrEntityNotFound) {
						check(t, "Delete", err)
					}
					delete(numbers, i)
					continue
				}
				n := rnd.IntN(7)
				apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%05d", i), int64(n), i%60)))
				numbers[i] = n
			}
			if part == 0 && round%3 > 0 {
				check(t, "Flush", db.Flush(t.Context()))
			}
		}
		for _, reverse := range []bool{false, true} {
			for _, n := range []int{0, 3} {
				var want []string
				for i := range rows {
					if has, ok := numbers[i]; ok && has == n {
						want = append(want, fmt.Sprintf("%05d", i))
					}
				}
				if reverse {
					slices.Reverse(want)
				}
				var got []string
				c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse(fmt.Sprintf("N eq %dL", n)), Reverse: reverse}).(store.ColumnCursor)
				for {
					if rows := nextColumns(c, round%2 == 0); rows != nil {
						for i := range rows.Len() {
							got = append(got, string(rows.AppendRow(nil, i)))
						}
					} else if c.Next() {
						got = append(got, string(c.Row().AppendRow(nil)))
					} else {
						break
					}
				}
				check(t, "Query", errors.Join(c.Err(), c.Close()))
				if !slices.Equal(got, want) {
					t.Fatalf("TABLEROCK_SEED=%d, round %d, reverse %v: %d rows, want %d", seed, round, reverse, len(got), len(want))
				}
			}
		}
	}
}

// TestFilterOfSeveralRanges filters two ranges of keys by values, which the rows between the ranges have too. Those must not
// be returned, and not be examined, except in the row groups at the ends of the ranges, which count whole.
func TestFilterOfSeveralRanges(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows, group = 2000, 300 // of a partition, and more than a row group has
	o := manual(vfs.NewMem())
	o.SegmentBytes, o.FileBytes = 4<<20, 4<<20
	db := mustCreate(t, o)
	for _, partition := range []string{"a", "b", "c", "d"} {
		fill(t, db, partition, rows, 10)
	}
	check(t, "Flush", db.Flush(t.Context()))
	for _, reverse := range []bool{false, true} {
		for _, matches := range []int{5, rows - 5} { // few row groups have one, or all
			text := fmt.Sprintf("(PartitionKey eq 'a' or PartitionKey eq 'c') and N lt %dL", matches)
			found, examined := examine(t, db, store.Query{Filter: filter.MustParse(text), Reverse: reverse})
			if len(found) != 2*matches || slices.Max(found) != int64(matches)-1 {
				t.Errorf("%s, reverse %v: %d rows match, want %d", text, reverse, len(found), 2*matches)
			}
			if examined < 2*matches || examined > 2*rows+3*group {
				t.Errorf("%s, reverse %v: %d rows are examined, %d are in the ranges", text, reverse, examined, 2*rows)
			}
		}
	}
}

// TestRangesBesideMemtables filters two ranges of keys in a file, beside rows of two memtables that match in
// the ranges, between them and around them. Only the older memtable has rows in the first range, and only the
// newer one in the second.
func TestRangesBesideMemtables(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 2000
	o := manual(vfs.NewMem())
	o.SegmentBytes, o.FileBytes = 4<<20, 4<<20
	db := mustCreate(t, o)
	partitions := []string{"a", "b", "c", "d", "e"}
	for _, partition := range partitions {
		fill(t, db, partition, rows, 10)
	}
	check(t, "Flush", db.Flush(t.Context()))
	var want []string
	for _, partition := range partitions {
		if partition == "d" {
			fill(t, db, "z", 80, 60_000) // begins another memtable
		}
		apply(t, db, store.Insert(entity(partition, "5", 0, 10)))
		if partition == "b" || partition == "d" {
			want = append(want, partition, partition) // that of the file, which comes first, and this one
		}
	}
	if s, err := db.Stats(); err != nil || len(s.Memtables) != 2 {
		t.Fatalf("%d memtables, want 2, %v", len(s.Memtables), err)
	}
	for _, reverse := range []bool{false, true} {
		q := store.Query{Filter: filter.MustParse("PartitionKey ge 'b' and PartitionKey lt 'e' and PartitionKey ne 'c' and N eq 0L"), Reverse: reverse}
		keys, _, _ := pages(t, db, q)
		if reverse {
			slices.Reverse(keys)
		}
		if !slices.EqualFunc(keys, want, func(k edm.Key, partition string) bool { return k.Partition == partition }) {
			t.Errorf("reverse %v: the rows %v, want those of %v", reverse, keys, want)
		}
	}
}

// TestFilterBesideClippedFile filters rows at the end of a file that a compaction has clipped, and
// those of the file that it has written, which follow.
func TestFilterBesideClippedFile(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := manual(vfs.NewMem())
	o.NoSync, o.TierRuns, o.FileBytes, o.SegmentBytes, o.CacheBytes = true, 16, 1<<20, 16<<20, 64<<20
	db := mustCreate(t, o)
	random := rand.NewChaCha8([32]byte{})
	numbers := map[string]int{} // by row: N
	write := func(row string, n, size int) {
		e := entity("p", row, int64(n), 0)
		b := make([]byte, size) // which no compression makes shorter
		_, _ = random.Read(b)
		e.Properties[1].Value = edm.Binary(b)
		apply(t, db, store.InsertOrReplace(e))
		numbers[row] = n
	}
	const rows = 12_000
	for i := range rows {
		write(fmt.Sprintf("%06d", i), i%50, 250)
	}
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Compact", db.Compact(t.Context()))
	m, err := manifest.Read(o.FS, "db")
	check(t, "read manifest", err)
	var first []string // rows of the files
	for _, f := range m.Files {
		if user, _, _ := codec.SplitTrailer(f.Smallest); bytes.Contains(user, []byte("p")) {
			_, _, row, _ := codec.SplitKey(user)
			first = append(first, string(codec.AppendUTF8(nil, row)))
		}
	}
	slices.Sort(first)
	if len(first) < 3 {
		t.Fatalf("%d files", len(first))
	}
	// New rows at the end of the first file, and all of the second one again: the compaction
	// clips the first file there.
	from, to := first[1], first[2]
	n, err := strconv.Atoi(from)
	check(t, "Atoi", err)
	before := fmt.Sprintf("%06dx", n-1)
	for i := range 220 {
		write(fmt.Sprintf("%s%05d", before, 4*i), i%50, 250)
	}
	for i := range rows {
		if row := fmt.Sprintf("%06d", i); row >= from && row < to {
			write(row, i%50, 600)
		}
	}
	check(t, "Flush", db.Flush(t.Context()))
	for worked := true; worked; {
		worked, err = db.Step(t.Context())
		check(t, "Step", err)
	}
	for _, from := range []string{before, "000000"} {
		var want []string
		for row, n := range numbers {
			if row >= from && row < to && n == 3 {
				want = append(want, row)
			}
		}
		slices.Sort(want)
		for _, reverse := range []bool{false, true} {
			expr := fmt.Sprintf("PartitionKey eq 'p' and RowKey ge '%s' and RowKey lt '%s' and N eq 3L", from, to)
			c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse(expr), Reverse: reverse})
			var got []string
			for c.Next() {
				got = append(got, string(c.Row().AppendRow(nil)))
			}
			check(t, "Query", errors.Join(c.Err(), c.Close()))
			if reverse {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("from %s, reverse %v: %d rows, want %d", from, reverse, len(got), len(want))
			}
		}
	}
}

// TestFilterOfDamage filters by a Binary in a file of which one is damaged: the rows before it
// are returned, each once.
func TestFilterOfDamage(t *testing.T) {
	disk := vfs.NewMem()
	const rows, damaged = 3000, 1700
	db := damagedRows(t, disk, rows, damaged, 4<<20)
	defer db.Close()
	for _, expr := range []string{"Filler ne X'00'", "Filler ne X'00' and N ge 0L", "N ge 1500L and Filler ne X'00'"} {
		for _, q := range []store.Query{{}, {Reverse: true}, {Budget: rows}, {BudgetBytes: 1 << 30}} {
			q.Filter = filter.MustParse(expr)
			for _, byColumns := range []bool{false, true} {
				want := 0
				if strings.Contains(expr, "1500") && !q.Reverse {
					want = 1500
				}
				if q.Reverse {
					want = rows - 1
				}
				first := want
				add := func(row []byte) {
					n, err := strconv.Atoi(string(row))
					check(t, "Atoi", err)
					if n != want {
						t.Fatalf("%+v: row %d, want %d", q, n, want)
					}
					if want++; q.Reverse {
						want -= 2
					}
				}
				c := db.Query(t.Context(), table, q).(store.ColumnCursor)
				for {
					if byColumns {
						if rows := c.NextColumns(); rows != nil {
							for i := range rows.Len() {
								add(rows.AppendRow(nil, i))
							}
							continue
						}
					}
					if !c.Next() {
						break
					}
					add(c.Row().AppendRow(nil))
				}
				err := c.Err()
				_ = c.Close()
				var damage *store.CorruptError
				if !errors.As(err, &damage) || (want-damaged)*(first-damaged) < 0 || max(want-damaged, damaged-want) > 20 {
					t.Errorf("%+v, by columns %v: rows %d to %d, then %v", q, byColumns, first, want, err)
				}
			}
		}
	}
}

// TestFilterAfterWalk filters rows of a file and of a memtable, of which some neighbours match often
// and others rarely. So the query walks from row to row, and then goes on by columns behind a row of
// the memtable: no row is returned again.
func TestFilterAfterWalk(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows, neighbours = 3000, 150
	seed := testSeed(t)
	for round := range uint64(16 / stride(4)) {
		rnd := rand.New(rand.NewPCG(seed, round))
		db := flushedRows(t, rows, 4<<20)
		matches := make([]bool, rows)
		put := func(of func(row int) bool) {
			share := 0.0
			for i := range rows {
				if i%neighbours == 0 {
					share = []float64{0, .02, .1, .3, .45, .6, .8, 1}[rnd.IntN(8)]
				}
				if of(i) {
					matches[i] = rnd.Float64() < share
					n := int64(2)
					if matches[i] {
						n = 1
					}
					apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%05d", i), n, i%60)))
				}
			}
		}
		put(func(int) bool { return true })
		check(t, "Flush", db.Flush(t.Context()))
		check(t, "Compact", db.Compact(t.Context()))
		put(func(row int) bool { return row/400%2 == int(round%2) })
		for _, reverse := range []bool{false, true} {
			returned := make([]int, rows)
			c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse("N eq 1L"), Reverse: reverse})
			for c.Next() {
				i, err := strconv.Atoi(c.Row().Key().Row)
				check(t, "row key", err)
				returned[i]++
			}
			check(t, "Query", errors.Join(c.Err(), c.Close()))
			for i, n := range returned {
				if n > 1 || n == 1 != matches[i] {
					t.Fatalf("TABLEROCK_SEED=%d, round %d, reverse %t: row %d was returned %d times, matches %t", seed, round, reverse, i, n, matches[i])
				}
			}
		}
	}
}

// TestDamagedNewerVersion filters a file of which a newer file has a version of one row that matches. Bounds say that no row
// of the newer file matches, but its only group is damaged: nobody can know whether the row matches.
func TestDamagedNewerVersion(t *testing.T) {
	const rows, hidden = 3000, 1400 // hidden % 7 == 0
	for _, reverse := range []bool{false, true} {
		disk := vfs.NewMem()
		o := manual(disk)
		o.SegmentBytes = 4 << 20
		db := mustCreate(t, o)
		fill(t, db, "p", rows, 0)
		check(t, "Flush", db.Flush(t.Context()))
		apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%06d", hidden), rows, 0)))
		check(t, "Close", db.Close())
		names := files(t, disk, "db", ".sst")
		check(t, "Patch", disk.Patch("db/"+names[len(names)-1], 100, []byte("damaged")))
		db = mustOpen(t, "db", o)
		text := fmt.Sprintf("N eq %dL or N eq %dL or N eq %dL", hidden-1, hidden, hidden+1)
		returned := 0
		var err error
		for _, err = range db.Entities(t.Context(), table, store.Query{Filter: filter.MustParse(text), Reverse: reverse}) {
			if err == nil {
				returned++
			}
		}
		if !errors.Is(err, store.ErrCorrupt) || returned != 1 {
			t.Errorf("reverse=%t: %d rows and %v, want the row before the hidden one and %v", reverse, returned, err, store.ErrCorrupt)
		}
		_ = closeAtOnce(db) // the same error
	}
}
