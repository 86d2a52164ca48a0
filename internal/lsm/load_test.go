package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// loadRow is a row of a Load in a test.
type loadRow struct {
	key   []byte
	value string
}

// randomRows returns about n sorted rows of the first keys of testKey, without those of
// dropped tables.
func (h *harness) randomRows(n, keys int) (rows []loadRow) {
	for range n {
		i := h.rng.IntN(keys)
		rows = append(rows, loadRow{testKey(i), h.text(i, h.rng.IntN(120))})
	}
	slices.SortFunc(rows, func(a, b loadRow) int { return bytes.Compare(a.key, b.key) })
	rows = slices.CompactFunc(rows, func(a, b loadRow) bool { return bytes.Equal(a.key, b.key) })
	return slices.DeleteFunc(rows, func(r loadRow) bool {
		_, gone := h.dropped[binary.BigEndian.Uint32(r.key)]
		return gone
	})
}

// writeRows adds the rows and finishes the files of l.
func (h *harness) writeRows(l *Load, rows []loadRow) error {
	shape := codec.NewShape(testProps("x", 1))
	var row codec.Row
	for _, r := range rows {
		values, wide := codec.AppendValues(nil, shape, testProps(r.value, 1))
		row.Reset(r.key, 1, shape, wide, values)
		if err := l.Add(r.key, &row); err != nil {
			return err
		}
	}
	return l.Finish()
}

// load flushes the memtable and loads rows as the next write.
func (h *harness) load(rows []loadRow) {
	h.t.Helper()
	h.flush()
	l := h.tree.NewLoad(len(rows), false)
	must(h.t, h.writeRows(l, rows))
	must(h.t, h.install(l))
	h.loaded(rows)
}

func (h *harness) install(l *Load) error {
	next := h.seq + 1
	return l.Install(next, edm.Ticks(next), manifest.Edit{LastSeq: next, MinHighWater: next},
		func([]manifest.File) error { return nil })
}

// loaded adds the rows of an installed Load to the model.
func (h *harness) loaded(rows []loadRow) {
	h.seq++
	h.flushed = h.seq
	for _, r := range rows {
		h.model[string(r.key)] = append(h.model[string(r.key)], version{h.seq, r.value})
	}
}

// TestLoadBesideFlush finishes the files of a Load during a flush of the same keys, and installs
// them after it. No key is new then.
func TestLoadBesideFlush(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 21)
	for i := range 200 {
		h.put(i, 60)
	}
	rows := h.randomRows(600, 200)
	flush := h.newFlush()
	l := h.tree.NewLoad(len(rows), true)
	must(t, h.writeRows(l, rows))
	finishJob(t, flush)
	h.flushed = h.seq
	h.mem = newTestMemtable(len(h.mem.image))
	must(t, h.install(l))
	h.loaded(rows)
	h.check()
	for _, f := range h.tree.Manifest().Files {
		if f.Stamp != 0 && f.NewKeys > manifest.AllNewKeys/10 {
			t.Errorf("%d of %d keys of file %d are new", f.NewKeys, manifest.AllNewKeys, f.Number)
		}
	}
	h.close()
}

// TestLoad loads rows over older ones, with a snapshot before the install and newer writes
// after it, and compacts everything.
func TestLoad(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 21)
	for i := range 200 {
		h.put(i, 60)
	}
	h.flush()
	h.snaps = []uint64{h.seq}
	rows := h.randomRows(600, 300)
	h.load(rows)
	h.check()
	loaded := h.seq
	files, newKeys := 0, 0.0
	for _, f := range h.tree.Manifest().Files {
		if f.Stamp == 0 {
			continue
		}
		files++
		newKeys += float64(f.NewKeys) / manifest.AllNewKeys
		_, first, _ := codec.SplitTrailer(f.Smallest)
		_, last, _ := codec.SplitTrailer(f.Largest)
		if f.Stamp != loaded || f.MinSeq != loaded || f.MaxSeq != loaded || first != loaded || last != loaded {
			t.Errorf("loaded file %+v, want sequence and Timestamp %d", f, loaded)
		}
	}
	if files < 2 || newKeys == 0 || newKeys == float64(files) {
		t.Errorf("%d loaded files with the sum %.2f of the shares of new keys, want some files, and neither 0 nor 1 in all", files, newKeys)
	}
	for i := range 100 {
		h.put(i*3, 60)
	}
	h.flush()
	h.check()
	h.close()
	h.open()
	h.check()
	h.compactAll()
	h.check()
	h.snaps = nil
	finishJob(t, h.tree.NewFullCompaction())
	for _, f := range h.tree.Manifest().Files {
		if f.Stamp != 0 {
			t.Errorf("file %d is a loaded one after a full compaction", f.Number)
		}
	}
	h.finish()
}

// TestLoadIsMoved loads rows that overlap nothing: they get to the bottom unread, and
// count as new.
func TestLoadIsMoved(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 22)
	for part := range 4 {
		var rows []loadRow
		for i := range 400 {
			key := codec.AppendKey(nil, 16, fmt.Sprintf("p%d", part), fmt.Sprintf("r%06d", i))
			rows = append(rows, loadRow{key, h.text(i, 60)})
		}
		h.load(rows)
		for _, f := range h.tree.Manifest().Files {
			if f.NewKeys != manifest.AllNewKeys {
				t.Errorf("part %d: %d of %d keys of file %d are new", part, f.NewKeys, manifest.AllNewKeys, f.Number)
			}
		}
		h.compactAll()
	}
	s := h.tree.Stats()
	if s.Counters.MovedFiles == 0 || s.Counters.Compactions != 0 || s.SpaceAmp != 1 || len(s.Tiers) != 1 {
		t.Errorf("stats %+v, want files that were moved and nothing else", s)
	}
	if n := s.Counters; n.FlushedBytes != s.Bytes || n.FlushedFiles != uint64(s.Files) || n.Flushes != 8 {
		t.Errorf("stats %+v, want 4 flushes of nothing and 4 loads of %d files with %d bytes", s, s.Files, s.Bytes)
	}
	h.check()
	h.finish()
}

// TestCrashOfLoad cuts the power at every operation of a Load: the tree has all rows or
// none, and no other file after the leftovers are removed.
func TestCrashOfLoad(t *testing.T) {
	for _, serial := range []bool{false, true} {
		t.Run(fmt.Sprintf("serial=%t", serial), func(t *testing.T) { testCrashOfLoad(t, serial) })
	}
}

func testCrashOfLoad(t *testing.T, serial bool) {
	if serial {
		race.SkipOneGoroutine(t)
	}
	mem := vfs.NewCrashMem()
	h := newHarness(t, mem, smallOptions(), 24)
	h.prepare()
	h.flush()
	before := h.seq
	rows := h.randomRows(300, 300)
	var disks []*vfs.Mem
	var names []string
	n, stride := uint64(0), uint64(11) // no divisor of the number of modes
	if testing.Short() {
		stride = 143
	}
	var mu sync.Mutex
	mem.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		for _, mode := range vfs.CrashModes {
			if n++; n%stride != 0 {
				continue
			}
			disks = append(disks, mem.Crash(vfs.CrashOptions{Mode: mode, Seed: n}))
			names = append(names, fmt.Sprintf("%v at %v", mode, op))
		}
	})
	l := h.tree.NewLoad(len(rows), serial)
	must(t, h.writeRows(l, rows))
	must(t, h.install(l))
	mem.OnOp(nil)
	for _, mode := range vfs.CrashModes {
		disks = append(disks, mem.Crash(vfs.CrashOptions{Mode: mode}))
		names = append(names, mode+" at the end")
	}
	seen := map[bool]int{}
	for i, disk := range disks {
		m, err := manifest.Read(disk, testDir)
		must(t, err)
		c := h.withFS(t, disk)
		installed := m.LastSeq == before+1
		seen[installed]++
		if !installed && m.LastSeq != before {
			t.Fatalf("%s: last sequence %d, want %d or the next", names[i], m.LastSeq, before)
		}
		c.model = make(map[string][]version, len(h.model))
		for key, versions := range h.model {
			c.model[key] = slices.Clip(versions)
		}
		if installed {
			c.loaded(rows)
		}
		c.open()
		must(t, c.tree.CheckLeftovers(m.LastSeq, max(1, edm.Ticks(m.HighWater))))
		_, err = c.tree.RemoveLeftovers()
		must(t, err)
		c.check()
		removeHeadless(t, disk)
		c.checkFiles()
		c.close()
	}
	if seen[false] == 0 || seen[true] == 0 {
		t.Fatalf("disks by state: %v, want some of each", seen)
	}
}

// removeHeadless removes the sstables without a complete header, which may be files of
// others.
func removeHeadless(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	names, err := disk.List(testDir)
	must(t, err)
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind != filename.SSTable {
			continue
		}
		f, err := disk.Open(testDir + "/" + name)
		must(t, err)
		_, err = sstable.Open(f, sstable.ReaderOptions{DBID: testDBID, Number: number, Name: name})
		must(t, f.Close())
		if damage := new(corrupt.Error); errors.As(err, &damage) && damage.Offset == 0 {
			must(t, disk.Remove(testDir+"/"+name))
		}
	}
}

// TestFaultsOfLoad fails each operation of a Load: nothing has changed, no file remains,
// and the tree takes the Load again. A Load that returns no error has all of its rows.
func TestFaultsOfLoad(t *testing.T) {
	for _, serial := range []bool{false, true} {
		t.Run(fmt.Sprintf("serial=%t", serial), func(t *testing.T) { testFaultsOfLoad(t, serial) })
	}
}

func testFaultsOfLoad(t *testing.T, serial bool) {
	if serial {
		race.SkipOneGoroutine(t)
	}
	mem := vfs.NewMem()
	h := newHarness(t, mem, smallOptions(), 25)
	h.prepare()
	h.flush()
	rows := h.randomRows(300, 300)
	failed, doubts, stride := 0, 0, 1
	if testing.Short() {
		stride = 7
	}
	for at, ended := stride, false; !ended; at += stride {
		injected := errorfs.Wrap(mem.Clone(), nil)
		c := h.withFS(t, injected)
		c.model = maps.Clone(h.model)
		c.open()
		var mu sync.Mutex
		n, failing := 0, ""
		injected.SetRule(func(op vfs.Op) *errorfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			// A file whose removal fails remains until the next install.
			if n++; n == at && op.Kind != "remove" {
				failing = op.Kind
				return &errorfs.Fault{Err: syscall.EIO}
			}
			return nil
		})
		l := c.tree.NewLoad(len(rows), serial)
		err := c.writeRows(l, rows)
		if err == nil {
			err = c.install(l)
		}
		injected.SetRule(nil)
		switch {
		case err == nil && failing != "" && failing != "read" && failing != "size": // of older files, whose filters are optional
			t.Fatalf("operation %d, a %s, failed without an error of the Load", at, failing)
		case err == nil:
			ended = n < at
		case errors.Is(err, ErrInDoubt):
			failed++
			doubts++
			l.Abort()
			must(t, c.tree.Close())
			continue
		case !errors.Is(err, syscall.EIO):
			t.Fatalf("operation %d failed: %v", at, err)
		default:
			failed++
			l.Abort()
			c.check()
			c.checkFiles()
			l = c.tree.NewLoad(len(rows), serial)
			must(t, c.writeRows(l, rows))
			must(t, c.install(l))
		}
		c.loaded(rows)
		c.check()
		must(t, c.tree.Close())
	}
	if failed < 5 || doubts == 0 && stride == 1 {
		t.Fatalf("%d operations failed, after %d it is unknown which manifest is durable: want more", failed, doubts)
	}
}

// TestCompress writes files that overlap nothing: flushed ones are compressed by a rewrite
// into the bottom, and those of a load, which are compressed, are moved there.
func TestCompress(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, compacted := range []sstable.Compression{sstable.CompressionFast, sstable.CompressionSmall} {
		o := smallOptions()
		o.FileBytes, o.TierRuns, o.CompactedCompression = 32<<10, 9, compacted
		h := newHarness(t, vfs.NewMem(), o, 17)
		key := func(n int) []byte { return codec.AppendKey(nil, 16, "p", fmt.Sprintf("r%06d", n)) }
		const runs, rows = 4, 1000
		for run := range runs {
			for i := range rows {
				n := run*rows + i
				h.write(key(n), h.text(n, 60))
			}
			h.flush()
		}
		var load []loadRow
		for i := range rows {
			n := runs*rows + i
			load = append(load, loadRow{key(n), h.text(n, 60)})
		}
		h.load(load)
		if m, err := manifest.Read(h.fs, testDir); err != nil || (m.Required == feature.Zstd) != (compacted == sstable.CompressionSmall) {
			t.Errorf("compression %d: the manifest requires the features %b, error %v", compacted, m.Required, err)
		}
		before := h.tree.Stats()
		h.compactAll()
		after := h.tree.Stats()
		// Files that are too small for the bottom remain above it.
		if after.Bottom().Entries < (runs+1)*rows*99/100 {
			t.Errorf("compression %d: %+v, want nearly all rows in the bottom", compacted, after.Tiers)
		}
		v := h.tree.Version()
		for _, s := range v.runs.Bottom().SSTs {
			r, err := s.Reader()
			must(t, err)
			if r.Small() != (compacted == sstable.CompressionSmall) {
				t.Errorf("compression %d: file %d is compressed in the other way", compacted, s.Number)
			}
		}
		v.Unref()
		c := after.Counters
		switch compacted {
		case sstable.CompressionSmall:
			if c.EntriesOut > 2*runs*rows || c.MovedFiles == 0 || after.Bytes*100 > before.Bytes*95 {
				t.Errorf("%d bytes became %d, %+v: want the flushed rows to be rewritten once, and the loaded ones to be moved", before.Bytes, after.Bytes, c)
			}
		default:
			if c.EntriesOut != runs*rows || after.Bytes != before.Bytes {
				t.Errorf("%d bytes became %d, %+v: want moves only", before.Bytes, after.Bytes, c)
			}
		}
		h.check()
		h.finish()
	}
}
