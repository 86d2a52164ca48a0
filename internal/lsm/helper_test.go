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
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

const testDir = "db"

var testDBID = [16]byte{7, 1, 2, 3}

// version is one write in the model; value "" is a delete.
type version struct {
	seq   uint64
	value string
}

// world is a tree beside a model of what it must hold.
type world struct {
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
	mem     *memory
	merge   *Job
}

// memory is a memtable and its image.
type memory struct {
	image []byte
	used  int
	table *memtable.Table
	shape *codec.Shape
}

func newMemory(size int) *memory {
	m := &memory{image: make([]byte, size), shape: codec.NewShape(testProps("x", 1))}
	m.table = memtable.New(memtable.Options{Image: m.image})
	m.table.AddShape(1, 0, m.shape)
	return m
}

func testProps(value string, seq uint64) edm.Properties {
	return edm.Properties{{Name: "Value", Value: edm.String(value)}, {Name: "Seq", Value: edm.Int64(int64(seq))}}
}

// add applies a write and reports whether there was room.
func (m *memory) add(key []byte, value string, seq, keep uint64) bool {
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

func newWorld(t testing.TB, fsys vfs.FS, o Options, seed uint64) *world {
	t.Helper()
	w := &world{t: t, fs: fsys, opts: o, rng: rand.New(rand.NewPCG(seed, 1)), model: make(map[string][]version), dropped: make(map[uint32]uint64)}
	must(t, fsys.MkdirAll(testDir))
	must(t, fsys.SyncDir("."))
	must(t, manifest.Write(fsys, testDir, &manifest.Manifest{DBID: testDBID, NextFile: 1}))
	w.open()
	w.mem = newMemory(1 << 20)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) open() {
	w.t.Helper()
	m, err := manifest.Read(w.fs, testDir)
	must(w.t, err)
	o := w.opts
	o.FS, o.Dir = w.fs, testDir
	o.Cache = cache.New(1 << 20)
	o.Snapshots = func() []uint64 { return slices.Clone(w.snaps) }
	o.Dropped = func(table uint32) bool {
		seq, ok := w.dropped[table]
		return ok && (len(w.snaps) == 0 || w.snaps[0] >= seq)
	}
	w.tree, err = Open(o, m)
	must(w.t, err)
}

// close ends the tree as a clean shutdown does.
func (w *world) close() {
	w.t.Helper()
	if w.merge != nil {
		w.merge.Abort()
		w.merge = nil
	}
	must(w.t, w.tree.Close())
}

// testKey spreads n over three tables and several partitions.
func testKey(n int) []byte {
	return codec.AppendKey(nil, uint32(16+n%3), fmt.Sprintf("p%02d", n%7), fmt.Sprintf("r%06d", n))
}

func (w *world) write(key []byte, value string) {
	w.t.Helper()
	if _, gone := w.dropped[binary.BigEndian.Uint32(key)]; gone {
		return
	}
	w.seq++
	keep := uint64(0)
	if n := len(w.snaps); n > 0 {
		keep = w.snaps[n-1]
	}
	if !w.mem.add(key, value, w.seq, keep) {
		w.t.Fatal("the memtable is full")
	}
	w.model[string(key)] = append(w.model[string(key)], version{w.seq, value})
}

func (w *world) put(n, size int) {
	w.write(testKey(n), w.text(n, size))
}

// text returns a value that says whose it is and does not compress well.
func (w *world) text(n, size int) string {
	b := fmt.Appendf(nil, "%d.%d ", n, w.seq)
	for len(b) < size {
		b = append(b, byte('!'+w.rng.IntN(90)))
	}
	return string(b)
}

// drop drops a table, which lets its rows vanish from files at once.
func (w *world) drop(table uint32) {
	w.t.Helper()
	if _, again := w.dropped[table]; again {
		return
	}
	w.seq++
	w.dropped[table] = w.seq
	w.flush()
}

// finishJob takes a job to its end.
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

// newFlush returns the job that writes what is in memory.
func (w *world) newFlush() *Job {
	last := w.seq
	return w.tree.NewFlush([]*memtable.Table{w.mem.table}, manifest.Edit{LastSeq: last})
}

func (w *world) flush() {
	w.t.Helper()
	finishJob(w.t, w.newFlush())
	w.flushed = w.seq
	w.mem = newMemory(len(w.mem.image))
}

// settle compacts until there is nothing to do.
func (w *world) settle() {
	w.t.Helper()
	if w.merge != nil {
		finishJob(w.t, w.merge)
		w.merge = nil
	}
	for range 10000 {
		j := w.tree.PickCompaction()
		if j == nil {
			return
		}
		finishJob(w.t, j)
	}
	w.t.Fatal("compaction does not come to an end")
}

// expect returns the rows in files that a reader at snap sees, by rising key.
// Rows of tables that snap sees as dropped are left out.
func (w *world) expect(snap uint64) (keys, values []string) {
	for key := range w.model {
		if seq, gone := w.dropped[binary.BigEndian.Uint32([]byte(key))]; !gone || seq > snap {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		v := w.at(key, snap)
		if v.value != "" {
			values = append(values, v.value)
		}
		return v.value == ""
	})
	return keys, values
}

func (w *world) at(key string, snap uint64) (found version) {
	for _, v := range w.model[key] {
		if v.seq <= snap && v.seq <= w.flushed {
			found = v
		}
	}
	return found
}

// check compares everything in files with the model, at the present and at each
// snapshot.
func (w *world) check() {
	w.t.Helper()
	v := w.tree.Version()
	defer v.Unref()
	for _, snap := range append(slices.Clone(w.snaps), w.flushed) {
		snap = min(snap, w.flushed)
		keys, values := w.expect(snap)
		w.checkScan(v, snap, keys, values, false)
		w.checkScan(v, snap, keys, values, true)
		w.checkGets(v, snap)
	}
}

func (w *world) checkScan(v *Version, snap uint64, keys, values []string, reverse bool) {
	w.t.Helper()
	o := IterOptions{Snapshot: snap}
	if w.rng.IntN(2) == 0 {
		o.Lower, o.Upper = testKey(w.rng.IntN(300)), testKey(w.rng.IntN(300))
		if bytes.Compare(o.Lower, o.Upper) > 0 {
			o.Lower, o.Upper = o.Upper, o.Lower
		}
		from, _ := slices.BinarySearch(keys, string(o.Lower))
		to, _ := slices.BinarySearch(keys, string(o.Upper))
		keys, values = keys[from:to], values[from:to]
	}
	var it merge.Iterator
	it.Init(v.AppendSources(nil, o), merge.Options{})
	i, ok := 0, it.SeekGE(o.Lower)
	if reverse {
		ok = it.SeekLT(nil)
	}
	for ; ok; ok = step(&it, reverse) {
		if it.Row() == nil || w.invisible(it.Key(), snap) {
			continue
		}
		n := i
		if reverse {
			n = len(keys) - 1 - i
		}
		user, seq, _ := codec.SplitTrailer(it.Key())
		if n < 0 || n >= len(keys) || string(user) != keys[n] || rowText(it.Row()) != values[n] {
			w.t.Fatalf("scan at %d (reverse %v, %q..%q): entry %d is %q@%d %.20q, want %q", snap, reverse, o.Lower, o.Upper, i, user, seq, rowText(it.Row()), at(keys, n))
		}
		i++
		if w.rng.IntN(20) == 0 { // there and back
			user = bytes.Clone(user)
			switch {
			case step(&it, !reverse):
				step(&it, reverse)
			case reverse:
				it.SeekLT(after(user))
			default:
				it.SeekGE(user)
			}
		}
	}
	must(w.t, it.Err())
	must(w.t, it.Close())
	if i != len(keys) {
		w.t.Fatalf("scan at %d (reverse %v, %q..%q): %d rows, want %d", snap, reverse, o.Lower, o.Upper, i, len(keys))
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
func (w *world) invisible(key []byte, snap uint64) bool {
	seq, gone := w.dropped[binary.BigEndian.Uint32(key)]
	return gone && seq <= snap
}

func rowText(r edm.Row) string {
	v, _ := r.Lookup("Value")
	text, _ := v.Text()
	return text
}

func (w *world) checkGets(v *Version, snap uint64) {
	w.t.Helper()
	var row sstable.Row
	found := map[string][]Candidate{}
	for key := range w.model {
		if w.invisible([]byte(key), snap) {
			continue
		}
		want := w.at(key, snap)
		_, kind, ok, err := v.Get([]byte(key), codec.KeyHash([]byte(key)), snap, &row)
		must(w.t, err)
		if got := ok && kind == codec.KindPut; got != (want.value != "") {
			w.t.Fatalf("get %q at %d: found %v, want version %d", key, snap, got, want.seq)
		} else if got && rowText(&row) != want.value {
			w.t.Fatalf("get %q at %d: %.20q, want %.20q", key, snap, rowText(&row), want.value)
		}
		row.Release()
		if ok {
			part := key[:codec.PartitionLen([]byte(key))]
			found[part] = append(found[part], Candidate{Key: []byte(key), Hash: codec.KeyHash([]byte(key))})
		}
	}
	for part, list := range found {
		// Keys that are not there must not hide those that are.
		absent := append([]byte(part), "~none\x01"...)
		list = append(list, Candidate{Key: absent, Hash: codec.KeyHash(absent)})
		v.Sift(list)
		for _, c := range list[:len(list)-1] {
			if !c.Maybe {
				w.t.Fatalf("sift at %d: %q of %d keys is ruled out", snap, c.Key, len(list))
			}
		}
	}
}

// checkFiles compares the directory with the manifest: no file too many, none
// too few.
func (w *world) checkFiles() {
	w.t.Helper()
	m, err := manifest.Read(w.fs, testDir)
	must(w.t, err)
	want := []string{filename.Manifest}
	for _, f := range m.Files {
		want = append(want, filename.Make(filename.SSTable, f.Number))
	}
	slices.Sort(want)
	want = slices.Compact(want)
	got, err := w.fs.List(testDir)
	must(w.t, err)
	got = slices.DeleteFunc(got, func(s string) bool { return s == filename.ManifestTemp })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Fatalf("the directory holds %v, the manifest lists %v", got, want)
	}
}

// TierRuns returns how many runs a tier has.
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
