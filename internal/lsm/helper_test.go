package lsm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

const testDir = "db"

var testDBID = [16]byte{7, 1, 2, 3}

// version is a write in the model. The value "" is a delete.
type version struct {
	seq   uint64
	value string
}

// harness is a tree and a model of its content.
type harness struct {
	t       testing.TB
	fs      vfs.FS
	opts    Options
	tree    *Tree
	rng     *rand.Rand
	seq     uint64 // the last write
	flushed uint64 // the last write in files
	model   map[string][]version
	snaps   []uint64
	dropped map[uint32]uint64
	mem     *testMemtable
	job     *Job // a compaction under way
}

// testMemtable is a memtable and its image.
type testMemtable struct {
	image []byte
	used  int
	table *memtable.Table
	shape *codec.Shape
}

func newTestMemtable(size int) *testMemtable {
	m := &testMemtable{image: make([]byte, size), shape: codec.NewShape(testProps("x", 1))}
	m.table = memtable.New(m.image)
	m.table.AddShape(1, 0, m.shape)
	return m
}

func testProps(value string, seq uint64) edm.Properties {
	return edm.Properties{{Name: "Value", Value: edm.String(value)}, {Name: "Seq", Value: edm.Int64(int64(seq))}}
}

// add applies a write. It returns false if the image is full.
func (m *testMemtable) add(key []byte, value string, seq, keep uint64) bool {
	e := codec.Entry{Kind: codec.KindDelete, Timestamp: edm.Ticks(seq), Key: key}
	if value != "" {
		e.Kind, e.Shape = codec.KindPut, 1
		e.Values, e.Wide = codec.AppendValues(nil, m.shape, testProps(value, seq))
	}
	n := codec.EntryHeaderLen + len(e.Key) + len(e.Values)
	if m.used+n > len(m.image) {
		return false
	}
	codec.AppendEntry(m.image[m.used:m.used], e)
	m.table.Apply(uint32(m.used), seq, keep)
	m.used += n
	return true
}

func smallOptions() Options {
	return Options{FileBytes: 4 << 10, TierRuns: 3, GroupBytes: 512}
}

// serialOptions returns smallOptions with or without a goroutine that finishes files.
func serialOptions(serial bool) Options {
	o := smallOptions()
	o.Behind = func() bool { return !serial }
	return o
}

func newHarness(t testing.TB, fsys vfs.FS, o Options, seed uint64) *harness {
	t.Helper()
	h := &harness{t: t, fs: fsys, opts: o, rng: rand.New(rand.NewPCG(seed, 1)), model: make(map[string][]version), dropped: make(map[uint32]uint64)}
	must(t, fsys.MkdirAll(testDir))
	must(t, fsys.SyncDir("."))
	must(t, manifest.Write(fsys, testDir, &manifest.Manifest{DBID: testDBID, NextFile: 1}))
	h.open()
	h.mem = newTestMemtable(1 << 20)
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *harness) open() {
	h.t.Helper()
	m, err := manifest.Read(h.fs, testDir)
	must(h.t, err)
	o := h.opts
	o.FS, o.Dir = h.fs, testDir
	o.Cache = cache.New(1 << 20)
	o.Snapshots = func() []uint64 { return slices.Clone(h.snaps) }
	o.Dropped = func(table uint32) bool {
		seq, ok := h.dropped[table]
		return ok && (len(h.snaps) == 0 || h.snaps[0] >= seq)
	}
	h.tree, err = Open(o, m)
	must(h.t, err)
}

// close ends the tree as a clean shutdown does.
func (h *harness) close() {
	h.t.Helper()
	if h.job != nil {
		h.job.Abort()
		h.job = nil
	}
	must(h.t, h.tree.Close())
	if n := h.tree.o.Cache.Stats().Blocks; n > 0 {
		h.t.Errorf("the cache keeps %d blocks of closed files", n)
	}
}

// testKey returns the n-th key. Consecutive keys are in different tables and partitions.
func testKey(n int) []byte {
	return codec.AppendKey(nil, uint32(16+n%3), fmt.Sprintf("p%02d", n%7), fmt.Sprintf("r%06d", n))
}

func (h *harness) write(key []byte, value string) {
	h.t.Helper()
	if _, gone := h.dropped[binary.BigEndian.Uint32(key)]; gone {
		return
	}
	h.seq++
	keep := uint64(0)
	if n := len(h.snaps); n > 0 {
		keep = h.snaps[n-1]
	}
	if !h.mem.add(key, value, h.seq, keep) {
		h.t.Fatal("the memtable is full")
	}
	h.model[string(key)] = append(h.model[string(key)], version{h.seq, value})
}

func (h *harness) put(n, size int) {
	h.write(testKey(n), h.text(n, size))
}

// text returns a value that identifies its key and does not compress well.
func (h *harness) text(n, size int) string {
	b := fmt.Appendf(nil, "%d.%d ", n, h.seq)
	for len(b) < size {
		b = append(b, byte('!'+h.rng.IntN(90)))
	}
	return string(b)
}

// drop drops a table. Its rows may be removed from files immediately.
func (h *harness) drop(table uint32) {
	h.t.Helper()
	if _, again := h.dropped[table]; again {
		return
	}
	h.seq++
	h.dropped[table] = h.seq
	h.flush()
}

// finishJob runs a job to its end.
func finishJob(t testing.TB, j *Job) {
	t.Helper()
	must(t, runErr(j))
}

func runErr(j *Job) error {
	for {
		if done, err := j.Step(context.Background()); done || err != nil {
			return err
		}
	}
}

// newFlush returns a job that flushes the memtable.
func (h *harness) newFlush() *Job {
	last := h.seq
	return h.tree.NewFlush([]*memtable.Table{h.mem.table}, manifest.Edit{LastSeq: last})
}

func (h *harness) flush() {
	h.t.Helper()
	finishJob(h.t, h.newFlush())
	h.flushed = h.seq
	h.mem = newTestMemtable(len(h.mem.image))
}

// compactAll compacts until no rule applies.
func (h *harness) compactAll() {
	h.t.Helper()
	if h.job != nil {
		finishJob(h.t, h.job)
		h.job = nil
	}
	for range 10000 {
		j := h.tree.PickCompaction()
		if j == nil {
			return
		}
		finishJob(h.t, j)
	}
	h.t.Fatal("the compactions do not end")
}

// expect returns the rows in files that a reader at snap sees, by rising key, without
// the rows of tables that are dropped for snap.
func (h *harness) expect(snap uint64) (keys, values []string) {
	for key := range h.model {
		if seq, gone := h.dropped[binary.BigEndian.Uint32([]byte(key))]; !gone || seq > snap {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		v := h.at(key, snap)
		if v.value != "" {
			values = append(values, v.value)
		}
		return v.value == ""
	})
	return keys, values
}

func (h *harness) at(key string, snap uint64) (found version) {
	for _, v := range h.model[key] {
		if v.seq <= snap && v.seq <= h.flushed {
			found = v
		}
	}
	return found
}

// check compares all rows in files with the model, at the present and at each snapshot.
func (h *harness) check() {
	h.t.Helper()
	v := h.tree.Version()
	defer v.Unref()
	for _, snap := range append(slices.Clone(h.snaps), h.flushed) {
		snap = min(snap, h.flushed)
		keys, values := h.expect(snap)
		h.checkScan(v, snap, keys, values, false)
		h.checkScan(v, snap, keys, values, true)
		h.checkGets(v, snap)
	}
	for _, s := range v.runs.SSTs() {
		h.checkTombstones(s)
	}
}

// checkTombstones checks that s has no more tombstones than it says.
func (h *harness) checkTombstones(s *runs.SST) {
	h.t.Helper()
	source := &Source{ssts: []*runs.SST{s}, o: sstable.IterOptions{Lower: s.Lo, Upper: bound.After(s.Hi), AllVersions: true}}
	n := uint64(0)
	for ok := source.SeekGE(s.Lo); ok; ok = source.Next() {
		if source.Row() == nil {
			n++
		}
	}
	must(h.t, source.Err())
	must(h.t, source.Close())
	if n > s.MostTombstones || !s.Clipped && n != s.MostTombstones {
		h.t.Fatalf("file %d has %d tombstones within %q and %q, and says at most %d of %d", s.Number, n, s.Lo, s.Hi, s.MostTombstones, s.Meta.Tombstones)
	}
}

// sourcesOf returns the sources of a version as a merge takes them.
func sourcesOf(v *Version, o sstable.IterOptions) (out []merge.Source) {
	for _, s := range v.Sources(nil, o) {
		out = append(out, s)
	}
	return out
}

func (h *harness) checkScan(v *Version, snap uint64, keys, values []string, reverse bool) {
	h.t.Helper()
	o := sstable.IterOptions{Snapshot: snap}
	if h.rng.IntN(2) == 0 {
		o.Lower, o.Upper = testKey(h.rng.IntN(300)), testKey(h.rng.IntN(300))
		if bytes.Compare(o.Lower, o.Upper) > 0 {
			o.Lower, o.Upper = o.Upper, o.Lower
		}
		from, _ := slices.BinarySearch(keys, string(o.Lower))
		to, _ := slices.BinarySearch(keys, string(o.Upper))
		keys, values = keys[from:to], values[from:to]
	}
	var it merge.Iterator
	it.Init(sourcesOf(v, o), merge.Options{})
	i, ok := 0, it.SeekGE(o.Lower)
	if reverse {
		ok = it.SeekLT(nil)
	}
	for ; ok; ok = step(&it, reverse) {
		if it.Row() == nil || h.invisible(it.Key(), snap) {
			continue
		}
		n := i
		if reverse {
			n = len(keys) - 1 - i
		}
		user, seq, _ := codec.SplitTrailer(it.Key())
		if n < 0 || n >= len(keys) || string(user) != keys[n] || rowText(it.Row()) != values[n] ||
			it.Row().Timestamp() != edm.Ticks(h.at(keys[n], snap).seq) {
			h.t.Fatalf("scan at %d (reverse %v, %q..%q): entry %d is %q@%d %.20q, want %q", snap, reverse, o.Lower, o.Upper,
				i, user, seq, rowText(it.Row()), at(keys, n))
		}
		i++
		if h.rng.IntN(20) == 0 { // one step back and forward
			user = bytes.Clone(user)
			switch {
			case step(&it, !reverse):
				step(&it, reverse)
			case reverse:
				it.SeekLT(bound.After(user))
			default:
				it.SeekGE(user)
			}
		}
	}
	must(h.t, it.Err())
	must(h.t, it.Close())
	if i != len(keys) {
		h.t.Fatalf("scan at %d (reverse %v, %q..%q): %d rows, want %d", snap, reverse, o.Lower, o.Upper, i, len(keys))
	}
}

func at(s []string, i int) string {
	if i < 0 || i >= len(s) {
		return "nothing"
	}
	return s[i]
}

func step(it *merge.Iterator, reverse bool) bool {
	if reverse {
		return it.Prev()
	}
	return it.Next()
}

// invisible reports whether the row is one of a table dropped for snap.
func (h *harness) invisible(key []byte, snap uint64) bool {
	seq, gone := h.dropped[binary.BigEndian.Uint32(key)]
	return gone && seq <= snap
}

func rowText(r edm.Row) string {
	v, _ := r.Lookup("Value")
	text, _ := v.Text()
	return text
}

func (h *harness) checkGets(v *Version, snap uint64) {
	h.t.Helper()
	var row sstable.Row
	found := map[string][]Candidate{}
	for key := range h.model {
		if h.invisible([]byte(key), snap) {
			continue
		}
		want := h.at(key, snap)
		_, kind, ok, err := v.Get([]byte(key), codec.KeyHash([]byte(key)), snap, &row)
		must(h.t, err)
		if got := ok && kind == codec.KindPut; got != (want.value != "") {
			h.t.Fatalf("get %q at %d: found %v, want version %d", key, snap, got, want.seq)
		} else if got && (rowText(&row) != want.value || row.Timestamp() != edm.Ticks(want.seq)) {
			h.t.Fatalf("get %q at %d: %.20q of %v, want %.20q of %d", key, snap, rowText(&row), row.Timestamp(), want.value, want.seq)
		}
		row.Release()
		if ok {
			partition := key[:codec.PartitionLen([]byte(key))]
			found[partition] = append(found[partition], Candidate{Key: []byte(key), Hash: codec.KeyHash([]byte(key))})
		}
	}
	for partition, list := range found {
		// A missing key must not exclude the others.
		absent := append([]byte(partition), "~none\x01"...)
		list = append(list, Candidate{Key: absent, Hash: codec.KeyHash(absent)})
		v.ProbeFilters(list)
		for _, c := range list[:len(list)-1] {
			if !c.Maybe {
				h.t.Fatalf("ProbeFilters at %d: %q of %d keys is excluded", snap, c.Key, len(list))
			}
		}
	}
}

// checkFiles compares the files in the directory with the manifest.
func (h *harness) checkFiles() {
	h.t.Helper()
	m, err := manifest.Read(h.fs, testDir)
	must(h.t, err)
	want := []string{filename.Manifest}
	for _, f := range m.Files {
		want = append(want, filename.Make(filename.SSTable, f.Number))
	}
	slices.Sort(want)
	want = slices.Compact(want)
	got, err := h.fs.List(testDir)
	must(h.t, err)
	got = slices.DeleteFunc(got, func(s string) bool { return s == filename.ManifestTemp })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		h.t.Fatalf("the directory contains %v, the manifest lists %v", got, want)
	}
}

// TierRuns returns the number of runs of a tier.
func (s *Stats) TierRuns(tier uint32) int {
	for _, ts := range s.Tiers {
		if ts.Tier == tier {
			return ts.Runs
		}
	}
	return 0
}

// Bottom returns the statistics of the bottom.
func (s *Stats) Bottom() TierStats {
	if n := len(s.Tiers); n > 0 && s.Tiers[n-1].Tier == manifest.BottomTier {
		return s.Tiers[n-1]
	}
	return TierStats{Tier: manifest.BottomTier}
}

// treeStats are the Stats of the current version, and what the jobs of the tree have done.
type treeStats struct {
	Stats
	Counters Counters
}

// Stats describes the current version.
func (t *Tree) Stats() treeStats {
	v := t.Version()
	defer v.Unref()
	return treeStats{v.Stats(), t.Counters()}
}

// Verify is Version.Verify of the current version.
func (t *Tree) Verify(ctx context.Context) (Verified, error) {
	v := t.Version()
	defer v.Unref()
	return v.Verify(ctx, func(int64) {})
}
