package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestDeletesWithPartOfReserve lets another file take all free space of a disk and the space
// of some files of the reserve, as it can while a flush uses them. Deletes must be accepted,
// before and after an open, and make room for writes.
func TestDeletesWithPartOfReserve(t *testing.T) {
	race.SkipOneGoroutine(t)
	for i, taken := range []int{4, 3, 0} {
		if i%stride(3) != 0 {
			continue
		}
		t.Run(fmt.Sprint(taken), func(t *testing.T) {
			f := newFullDisk(t, 32<<20, 16<<20, 1000, false)
			for range 14_000 {
				check(t, "insert", f.insert())
			}
			f.kill()
			for i := range taken {
				check(t, "Remove", f.disk.Remove(fmt.Sprintf("db/%06d.reserve", 8-i)))
			}
			f.otherFile("other", 0)
			f.kill()
			rows := slices.Sorted(maps.Keys(f.rows))
			f.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			rows = rows[:9000]
			for n, row := range rows {
				if _, err := f.db.Apply(t.Context(), table, store.Delete(edm.Key{Partition: "big", Row: row}, store.Any)); err != nil {
					t.Fatalf("delete %d: %v", n, err)
				}
				delete(f.rows, row)
			}
			if again := f.fill(); again < len(rows)/2 {
				t.Errorf("%d rows fit after %d were deleted", again, len(rows))
			}
		})
	}
}

// TestRefillAfterFlush flushes on a disk that another file has filled. The flush uses the
// reserve and frees its segments, and must fill the reserve before it returns: the other file
// could take that space.
func TestRefillAfterFlush(t *testing.T) {
	f := newFullDisk(t, 32<<20, 1<<20, 500, false)
	for range 200 {
		check(t, "insert", f.insert())
	}
	f.otherFile("other", 8<<10)
	used := 0
	f.disk.OnOp(func(op vfs.Op) {
		if op.Kind == "remove" && strings.HasSuffix(op.Name, ".reserve") {
			used++
		}
	})
	check(t, "Flush", f.db.Flush(t.Context()))
	f.disk.OnOp(nil)
	stats, err := f.db.Stats()
	check(t, "Stats", err)
	if want := int64(32<<20) / 16; used == 0 || stats.ReserveBytes != want {
		t.Errorf("the flush used %d files, and the reserve has %d bytes of %d", used, stats.ReserveBytes, want)
	}
}
