package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// everyKind returns a closed database with a manifest, an sstable and two sealed
// segments, and the names of these files.
func everyKind(t *testing.T) (disk *vfs.Mem, manifest, sst, older, newer string) {
	t.Helper()
	disk = vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 6, 1000) // one file: larger flushes are cut
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "q", 50, 1500)
	check(t, "Close", closeAtOnce(db))
	ssts, wals := files(t, disk, "db", ".sst"), files(t, disk, "db", ".wal")
	if len(ssts) != 1 || len(wals) != 2 {
		t.Fatalf("files are %v and %v, want one and two", ssts, wals)
	}
	return disk, "MANIFEST", ssts[0], wals[0], wals[1]
}

// patch writes p at off of a file and corrects the checksum at the end of the section
// [from, to). The checksum is the hash of the section, XORed with a value that depends
// on the position only.
func patch(t *testing.T, disk *vfs.Mem, name string, from, to, off int, p []byte) {
	t.Helper()
	b := readFile(t, disk, name)
	if to <= 0 {
		from, to, off = len(b)+from, len(b)+to, len(b)+off
	}
	sum := binary.LittleEndian.Uint64(b[to-8:]) ^ xxhash.Sum64(b[from:to-8])
	copy(b[off:], p)
	binary.LittleEndian.PutUint64(b[to-8:], sum^xxhash.Sum64(b[from:to-8]))
	check(t, "Patch", disk.Patch(name, 0, b))
}

// TestNewerFormat opens databases with one file of a later format version and right
// checksums. Open must refuse them and change nothing.
func TestNewerFormat(t *testing.T) {
	version := binary.LittleEndian.AppendUint32(nil, 1000)
	disk, manifest, sst, older, newer := everyKind(t)
	for _, c := range []struct {
		name  string
		patch func(t *testing.T, disk *vfs.Mem)
	}{
		{"manifest", func(t *testing.T, disk *vfs.Mem) {
			n := len(readFile(t, disk, "db/"+manifest))
			patch(t, disk, "db/"+manifest, 0, n, 8, version)
		}},
		{"older segment", func(t *testing.T, disk *vfs.Mem) { patch(t, disk, "db/"+older, 0, 4096, 8, version) }},
		{"newer segment", func(t *testing.T, disk *vfs.Mem) { patch(t, disk, "db/"+newer, 0, 4096, 8, version) }},
		{"sstable", func(t *testing.T, disk *vfs.Mem) {
			patch(t, disk, "db/"+sst, 0, 48, 8, version)
			patch(t, disk, "db/"+sst, -184, 0, -24, version)
		}},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/readonly=%v", c.name, readOnly), func(t *testing.T) {
				disk := disk.Clone()
				c.patch(t, disk)
				before := treeOf(t, disk, "db")
				o := manual(disk)
				o.ReadOnly = readOnly
				_, err := engine.Open("db", o)
				if !errors.Is(err, store.ErrNewerFormat) || errors.Is(err, store.ErrCorrupt) {
					t.Errorf("Open: %v, want %v", err, store.ErrNewerFormat)
				}
				if after := treeOf(t, disk, "db"); after != before {
					t.Errorf("the directory was\n%s and is\n%s", before, after)
				}
			})
		}
	}
}

// TestDamageAtOpen opens databases with a file that is damaged, cut or missing. The
// error must name the file, and the directory must stay as it is.
func TestDamageAtOpen(t *testing.T) {
	disk, manifest, sst, older, newer := everyKind(t)
	flip := func(off int) func(t *testing.T, disk *vfs.Mem, name string) {
		return func(t *testing.T, disk *vfs.Mem, name string) {
			b := readFile(t, disk, name)
			i := off
			if off < 0 {
				i += len(b)
			}
			check(t, "Patch", disk.Patch(name, int64(i), []byte{b[i] ^ 4}))
		}
	}
	cut := func(t *testing.T, disk *vfs.Mem, name string) {
		b := readFile(t, disk, name)
		check(t, "Remove", disk.Remove(name))
		writeFile(t, disk, name, b[:len(b)/2])
	}
	remove := func(t *testing.T, disk *vfs.Mem, name string) { check(t, "Remove", disk.Remove(name)) }
	for _, c := range []struct {
		name, file string
		offset     int64 // -1: any
		damage     func(t *testing.T, disk *vfs.Mem, name string)
	}{
		{"magic", manifest, 0, flip(0)},
		{"version", manifest, -1, flip(8)},
		{"sum", manifest, -1, flip(-1)},
		{"cut", manifest, -1, cut},
		{"header", sst, 0, flip(9)},
		{"footer", sst, -1, flip(-1)},
		{"cut", sst, -1, cut},
		{"missing", sst, 0, remove},
		{"header", older, 0, flip(41)},
		{"record", older, 4096, flip(4096 + 50)},
		{"cut", older, -1, cut},
		{"missing", older, 0, remove},
		{"header", newer, 0, flip(41)},
		{"last record", newer, -1, flip(8000)},
		{"cut", newer, -1, cut},
		{"missing", newer, 0, remove},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%s/readonly=%v", c.file, c.name, readOnly), func(t *testing.T) {
				disk := disk.Clone()
				c.damage(t, disk, "db/"+c.file)
				before := treeOf(t, disk, "db")
				o := manual(disk)
				o.ReadOnly = readOnly
				_, err := engine.Open("db", o)
				var damage *store.CorruptError
				if !errors.Is(err, store.ErrCorrupt) || !errors.As(err, &damage) || damage.File != c.file ||
					c.offset >= 0 && damage.Offset != c.offset {
					t.Errorf("Open: %v, want damage of %s at %d", err, c.file, c.offset)
				}
				if errors.Is(err, store.ErrNewerFormat) {
					t.Errorf("Open: %v, want an error other than a newer format", err)
				}
				if after := treeOf(t, disk, "db"); after != before {
					t.Errorf("the directory was\n%s and is\n%s", before, after)
				}
			})
		}
	}
}

// TestDamageOfRows damages the middle of an sstable, or the head of its first group.
// Operations that need these rows must fail and name the file, all others succeed.
func TestDamageOfRows(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	const rows = 4000
	fill(t, db, "p", rows, 20)
	check(t, "Compact", db.Compact(t.Context()))
	check(t, "Close", closeAtOnce(db))
	names := files(t, disk, "db", ".sst")
	sst := names[len(names)/2]
	size := len(readFile(t, disk, "db/"+sst))
	for name, off := range map[string]int{"middle": size / 2, "head": 148} {
		t.Run(name, func(t *testing.T) {
			disk := disk.Clone()
			check(t, "Patch", disk.Patch("db/"+sst, int64(off), []byte("damage")))
			testDamageOfRows(t, disk, sst, rows)
		})
	}
}

func testDamageOfRows(t *testing.T, disk *vfs.Mem, sst string, rows int) {
	db := mustOpen(t, "db", manual(disk))
	bad := -1
	for i := range rows {
		_, err := db.Get(t.Context(), table, edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)})
		var damage *store.CorruptError
		if err != nil && (!errors.As(err, &damage) || damage.File != sst || damage.Offset == 0) {
			t.Fatalf("Get of row %d: %v, want damage of %s", i, err, sst)
		}
		if err != nil && bad < 0 {
			bad = i
		}
	}
	if bad <= 0 {
		t.Fatalf("the first damaged row is %d", bad)
	}
	for _, reverse := range []bool{false, true} {
		c := db.Query(t.Context(), table, store.Query{Reverse: reverse})
		n := 0
		for c.Next() {
			n++
		}
		if err := c.Err(); !errors.Is(err, store.ErrCorrupt) || n == 0 || n >= rows {
			t.Errorf("query, reverse %v: %v after %d rows, want %v after some", reverse, err, n, store.ErrCorrupt)
		}
		_ = c.Close() // which may return the same error
	}
	row := fmt.Sprintf("%06d", bad)
	if _, err := db.Apply(t.Context(), table, store.Merge(entity("p", row, 1, 10), store.Any)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Merge into a damaged row: %v, want %v", err, store.ErrCorrupt)
	}
	apply(t, db, store.InsertOrReplace(entity("p", row, 1, 10)))
	if err := db.Compact(t.Context()); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Compact: %v, want %v", err, store.ErrCorrupt)
	}
	if _, err := db.Get(t.Context(), table, edm.Key{Partition: "p", Row: row}); err != nil {
		t.Errorf("Get of a row that was put again: %v", err)
	}
	if !slices.Contains(files(t, disk, "db", ".sst"), sst) {
		t.Errorf("the damaged %s was removed", sst)
	}
}
