package recovery

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

var dbid = [16]byte{1, 2, 3}

// record is the payload of a record that puts or deletes keys first to
// first+n-1; the first one of a segment defines shape 1.
func record(define bool, first, n int) []byte {
	props := edm.Properties{{Name: "N", Value: edm.Int32(1)}}
	shape := codec.NewShape(props)
	var out []byte
	if define {
		out = codec.AppendEntry(out, codec.Entry{Kind: codec.KindShape, Shape: 1, Values: codec.AppendShape(nil, shape)})
	}
	for i := range n {
		e := codec.Entry{Kind: codec.KindPut, Shape: 1, Timestamp: edm.Ticks(1000 + first + i), Key: key(first + i)}
		e.Values, e.Wide = codec.AppendValues(nil, shape, props)
		if (first+i)%5 == 0 {
			e = codec.Entry{Kind: codec.KindDelete, Timestamp: e.Timestamp, Key: e.Key}
		}
		out = codec.AppendEntry(out, e)
	}
	return out
}

func key(i int) []byte { return codec.AppendKey(nil, 16, "p", fmt.Sprint(i)) }

// segment writes a segment whose records have the given payloads and counts,
// and returns its end.
func segment(t *testing.T, disk *vfs.Mem, number, firstSeq uint64, prevEnd int64, seal bool, counts []int, payloads ...[]byte) int64 {
	t.Helper()
	h := wal.Header{DBID: dbid, Number: number, FirstSeq: firstSeq, PrevEnd: prevEnd}
	s, err := wal.New(h, make([]byte, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(disk, filename.Make(filename.WAL, number), wal.CreateOptions{NoPreallocate: true}); err != nil {
		t.Fatal(err)
	}
	for i, p := range payloads {
		payload, _, ok := s.Begin(len(p))
		if !ok {
			t.Fatal("a record does not fit")
		}
		copy(payload, p)
		s.Commit(wal.Record{FirstSeq: firstSeq, Count: uint16(counts[i])})
		firstSeq += uint64(counts[i])
	}
	end := s.Tail()
	if seal {
		err = s.Seal()
		end = s.Tail()
	} else {
		err = s.Sync(end)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return end
}

// TestCheckDirectory checks directories without a manifest: one with records is damaged.
func TestCheckDirectory(t *testing.T) {
	disk, _ := three(t)
	if err := CheckDirectory(disk, "."); !errors.Is(err, store.ErrCorrupt) || !errors.Is(err, store.ErrNotDatabase) {
		t.Errorf("without a manifest: %v, want %v that is %v too", err, store.ErrCorrupt, store.ErrNotDatabase)
	}
	disk = vfs.NewMem()
	if _, err := disk.Create("notes"); err != nil {
		t.Fatal(err)
	}
	if err := CheckDirectory(disk, "."); errors.Is(err, store.ErrCorrupt) || !errors.Is(err, store.ErrNotDatabase) {
		t.Errorf("with another file: %v, want %v only", err, store.ErrNotDatabase)
	}
}

// three writes segments 2, 3 and 5 with sequences 1 to 10, 11 to 20, 21 to 30.
func three(t *testing.T) (disk *vfs.Mem, ends [3]int64) {
	t.Helper()
	disk = vfs.NewMem()
	prev := int64(0)
	for i, number := range []uint64{2, 3, 5} {
		first := 10*i + 1
		ends[i] = segment(t, disk, number, uint64(first), prev, false, []int{4, 6}, record(true, first, 4), record(false, first+4, 6))
		prev = ends[i]
	}
	return disk, ends
}

func read(t *testing.T, disk *vfs.Mem, m *manifest.Manifest, mode Mode) (*Log, error) {
	t.Helper()
	m.DBID = dbid
	l, err := Read(disk, ".", m, mode)
	if err == nil {
		t.Cleanup(l.Free)
	}
	return l, err
}

// TestRead reads three segments in each mode and finds each entry in the
// memtable of its segment.
func TestRead(t *testing.T) {
	for _, mode := range []Mode{Own, Idle, Beside} {
		disk, _ := three(t)
		l, err := read(t, disk, &manifest.Manifest{Logs: []manifest.Log{{Number: 2}}}, mode)
		if err != nil {
			t.Fatalf("mode %d: %v", mode, err)
		}
		// Beside a writer, nothing proves that the last record is synced.
		last := map[Mode]uint64{Own: 30, Idle: 30, Beside: 24}[mode]
		if l.LastSeq > last || l.LastSeq < 20 || mode != Beside && l.LastSeq != 30 || l.Next != 6 || len(l.Segments) != 3 {
			t.Errorf("mode %d: last sequence %d, next number %d, %d segments", mode, l.LastSeq, l.Next, len(l.Segments))
		}
		if mode == Own && l.HighWater != 1030 {
			t.Errorf("high-water is %v, want 1030", l.HighWater)
		}
		for i := 1; i <= int(l.LastSeq); i++ {
			var row codec.Row
			s := l.Segments[(i-1)/10]
			seq, kind, ok := s.Table.Get(key(i), codec.PartitionHash(key(i)), codec.MaxSeq, &row)
			if !ok || seq != uint64(i) || (kind == codec.KindDelete) != (i%5 == 0) || kind == codec.KindPut && row.Timestamp() != edm.Ticks(1000+i) {
				t.Errorf("mode %d: entry %d is %d, %v, %v", mode, i, seq, kind, ok)
			}
		}
		if mode == Own {
			if !l.Unlisted {
				t.Error("the manifest is said to state the ends")
			}
			if err := l.Repair(); err != nil {
				t.Errorf("Repair: %v", err)
			}
		}
	}
}

// TestReadFindsGaps removes or swaps segments, or contradicts them in the manifest.
func TestReadFindsGaps(t *testing.T) {
	_, ends := three(t)
	logs := func(l ...manifest.Log) manifest.Manifest { return manifest.Manifest{Logs: l} }
	for _, c := range []struct {
		name   string
		m      manifest.Manifest
		damage func(disk *vfs.Mem) error
		file   string // in the error; "" reads well
		last   uint64
	}{
		{"whole", logs(manifest.Log{Number: 2}), nil, "", 30},
		{"no logs listed", logs(), nil, "", 30},
		{"first segment done with", manifest.Manifest{LastSeq: 10, Logs: []manifest.Log{{Number: 3}}}, nil, "", 30},
		{"sealed", logs(manifest.Log{Number: 2, Sealed: ends[0]}, manifest.Log{Number: 3, Sealed: ends[1]}, manifest.Log{Number: 5, Sealed: ends[2]}), nil, "", 30},
		{"first missing", logs(manifest.Log{Number: 2}), func(d *vfs.Mem) error { return d.Remove("000002.wal") }, "000003.wal", 0},
		// The header of 5 states the end of 3, and 2 is shorter.
		{"middle missing", logs(manifest.Log{Number: 2}), func(d *vfs.Mem) error { return d.Remove("000003.wal") }, "000002.wal", 0},
		{
			"sealed one missing", logs(manifest.Log{Number: 2}, manifest.Log{Number: 5, Sealed: ends[2]}),
			func(d *vfs.Mem) error { return d.Remove("000005.wal") }, "000005.wal", 0,
		},
		{
			"proven one missing", logs(manifest.Log{Number: 2}, manifest.Log{Number: 5, Proven: 4136}),
			func(d *vfs.Mem) error { return d.Remove("000005.wal") }, "000005.wal", 0,
		},
		{
			"proven one empty", logs(manifest.Log{Number: 2}, manifest.Log{Number: 5, Proven: 4136}),
			func(d *vfs.Mem) error { return d.Patch("000005.wal", 0, make([]byte, 4096)) }, "000005.wal", 0,
		},
		{"proven", logs(manifest.Log{Number: 2, Proven: ends[0]}, manifest.Log{Number: 5, Proven: ends[2]}), nil, "", 30},
		{"proven short", logs(manifest.Log{Number: 2}, manifest.Log{Number: 5, Proven: 4136}), nil, "", 30},
		{"proven long", logs(manifest.Log{Number: 2}, manifest.Log{Number: 5, Proven: ends[2] + 8}), nil, "000005.wal", 0},
		{"files are ahead", manifest.Manifest{LastSeq: 5, Logs: []manifest.Log{{Number: 2}}}, nil, "000002.wal", 0},
		{"swapped", logs(manifest.Log{Number: 2}), func(d *vfs.Mem) error {
			return errors.Join(d.Rename("000002.wal", "x"), d.Rename("000003.wal", "000002.wal"), d.Rename("x", "000003.wal"))
		}, "000002.wal", 0},
		// The header of an empty segment states the end too.
		{"end damaged", logs(manifest.Log{Number: 2}), func(d *vfs.Mem) error {
			segment(t, d, 6, 31, ends[2], false, nil)
			return d.Patch("000005.wal", ends[2]-9, []byte{0xff})
		}, "000005.wal", 0},
		{"sealed short", logs(manifest.Log{Number: 2, Sealed: ends[0] - 8}), nil, "000002.wal", 0},
		{"sealed long", logs(manifest.Log{Number: 2, Sealed: ends[0] + 8}), nil, "000002.wal", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk, _ := three(t)
			if c.damage != nil {
				if err := c.damage(disk); err != nil {
					t.Fatal(err)
				}
			}
			l, err := read(t, disk, &c.m, Own)
			var damage *corrupt.Error
			switch {
			case c.file == "" && (err != nil || l.LastSeq != c.last):
				t.Errorf("Read: %v, want all %d", err, c.last)
			case c.file != "" && (!errors.As(err, &damage) || damage.File != c.file):
				t.Errorf("Read: %v, want damage of %s", err, c.file)
			}
		})
	}
}

// TestReadOrder reads segments whose names are not in the order of their numbers.
func TestReadOrder(t *testing.T) {
	disk := vfs.NewMem()
	end := segment(t, disk, 999_999, 1, 0, false, []int{4}, record(true, 1, 4))
	segment(t, disk, 1_000_000, 5, end, false, []int{6}, record(true, 5, 6))
	if l, err := read(t, disk, &manifest.Manifest{Logs: []manifest.Log{{Number: 999_999}}}, Own); err != nil || l.LastSeq != 10 {
		t.Errorf("Read: %+v, %v, want 10 sequences", l, err)
	}
}

// TestUnfinishedSegment reads a log with an unfinished segment. It is ignored, unless
// the manifest lists its end, and its number is not used again.
func TestUnfinishedSegment(t *testing.T) {
	disk, _ := three(t)
	f, err := disk.Create("000009.wal")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 5000), 0); err != nil {
		t.Fatal(err)
	}
	l, err := read(t, disk, &manifest.Manifest{Logs: []manifest.Log{{Number: 2}}}, Own)
	if err != nil || l.LastSeq != 30 || l.Next != 10 {
		t.Fatalf("Read: %+v, %v, want 30 sequences and number 10", l, err)
	}
	_, err = read(t, disk, &manifest.Manifest{Logs: []manifest.Log{{Number: 2}, {Number: 9, Sealed: 4200}}}, Own)
	if !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("Read of one that the manifest lists: %v, want damage", err)
	}
}

// TestSealedLog reads a sealed log. It needs no repair, and it is unlisted unless the
// manifest lists its end.
func TestSealedLog(t *testing.T) {
	disk := vfs.NewMem()
	end := segment(t, disk, 2, 1, 0, true, []int{4}, record(true, 1, 4))
	for _, known := range []manifest.Log{{Number: 2}, {Number: 2, Proven: end}, {Number: 2, Sealed: end}} {
		l, err := read(t, disk, &manifest.Manifest{Logs: []manifest.Log{known}}, Own)
		if err != nil || l.Unlisted != (known.Sealed == 0) || l.LastSeq != 4 || !l.ends[0].Sealed {
			t.Errorf("Read with %+v: %+v, %v", known, l, err)
		}
	}
}

// TestReadRefusesEntries replays records with right checksums and invalid entries.
func TestReadRefusesEntries(t *testing.T) {
	good := record(true, 1, 2)
	put := func(e codec.Entry) []byte { return codec.AppendEntry(nil, e) }
	shape := codec.AppendShape(nil, codec.NewShape(edm.Properties{{Name: "N", Value: edm.Int32(1)}}))
	define := func(shape []byte) []byte { return put(codec.Entry{Kind: codec.KindShape, Shape: 1, Values: shape}) }
	for name, payload := range map[string][]byte{
		"nothing":           nil,
		"one entry too few": record(true, 1, 1),
		"a shape too far":   put(codec.Entry{Kind: codec.KindPut, Shape: 2, Key: key(1)}),
		"no shape":          record(false, 1, 2),
		"cut":               good[:len(good)-1],
		"a key of no table": append(record(true, 1, 1), put(codec.Entry{Kind: codec.KindDelete, Key: []byte("x")})...),
		"shape numbers": append(put(codec.Entry{
			Kind: codec.KindShape, Shape: 3,
			Values: codec.AppendShape(nil, codec.NewShape(nil)),
		}), record(false, 1, 2)...),
		"a cut shape":             append(define(shape[:len(shape)-1]), record(false, 1, 2)...),
		"bytes after a shape":     append(define(append(bytes.Clone(shape), 0)), record(false, 1, 2)...),
		"values of another shape": append(record(true, 1, 1), put(codec.Entry{Kind: codec.KindPut, Shape: 1, Key: key(2)})...),
		"bytes after the values":  append(record(true, 1, 1), put(codec.Entry{Kind: codec.KindPut, Shape: 1, Key: key(2), Values: make([]byte, 5)})...),
	} {
		disk := vfs.NewMem()
		segment(t, disk, 2, 1, 0, false, []int{2}, payload)
		_, err := read(t, disk, &manifest.Manifest{Logs: []manifest.Log{{Number: 2}}}, Own)
		var damage *corrupt.Error
		if !errors.As(err, &damage) || damage.File != "000002.wal" || damage.Offset < wal.HeaderLen {
			t.Errorf("%s: %v, want damage of 000002.wal", name, err)
		}
	}
}

// TestRemoveStale removes flushed segments and those without a header, and nothing else.
func TestRemoveStale(t *testing.T) {
	for _, preallocated := range []int64{0, 256 << 10} {
		disk, _ := three(t)
		empty, err := disk.Create("000004.wal")
		if err == nil {
			err = empty.Preallocate(0, preallocated)
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := disk.Create("000001.wal")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(strings.Repeat("foreign ", 100)), 0); err != nil {
			t.Fatal(err)
		}
		m := &manifest.Manifest{DBID: dbid, Logs: []manifest.Log{{Number: 5}}}
		if err := RemoveStale(disk, ".", m); err != nil {
			t.Fatal(err)
		}
		names, err := disk.List(".")
		if err != nil || fmt.Sprint(names) != "[000001.wal 000005.wal]" {
			t.Errorf("%v, %v are left", names, err)
		}
	}
}
