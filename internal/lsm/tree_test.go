package lsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestSameSeedSameBytes runs the same random life twice.
func TestSameSeedSameBytes(t *testing.T) {
	var dumps [2]string
	for i := range dumps {
		w := newWorld(t, vfs.NewMem(), smallOptions(), 21)
		for range 2500 {
			w.deterministicStep()
		}
		w.close()
		dump, err := vfs.Dump(w.fs, testDir)
		must(t, err)
		dumps[i] = dump
	}
	if dumps[0] != dumps[1] {
		t.Fatalf("two runs of one seed:\n%s\n%s", dumps[0], dumps[1])
	}
	if strings.Count(dumps[0], ".sst") < 5 {
		t.Fatalf("too little to compare:\n%s", dumps[0])
	}
}

func (w *world) deterministicStep() {
	switch n := w.rng.IntN(100); {
	case n < 80:
		w.put(w.rng.IntN(400), w.rng.IntN(100))
	case n < 95:
		w.write(testKey(w.rng.IntN(400)), "")
	case n < 97:
		w.flush()
	default:
		w.mergeStep()
	}
}

func TestDroppedTable(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 22)
	rows := func(table uint32, n int) {
		for i := range n {
			w.write(codec.AppendKey(nil, table, fmt.Sprintf("p%d", i/40), fmt.Sprint(i)), w.text(i, 80))
		}
	}
	rows(16, 300)
	rows(17, 300)
	rows(18, 3) // shares a file with the next
	rows(19, 297)
	w.flush()
	w.settle()
	w.snaps = []uint64{w.seq}
	w.drop(17)
	w.drop(18)
	w.settle()
	if n := w.rowsOf(17); n != 300 {
		t.Fatalf("the snapshot sees %d rows of the dropped table, want 300", n)
	}
	w.check()
	w.snaps = nil
	before := w.tree.Stats().Counters
	w.settle()
	s := w.tree.Stats()
	if s.Counters.DroppedFiles == before.DroppedFiles || s.Counters.MergedBytes != before.MergedBytes {
		t.Fatalf("want whole files dropped and nothing merged: %+v, then %+v", before, s.Counters)
	}
	w.check()
	finishJob(t, w.tree.NewFullCompaction())
	if n := w.rowsOf(17) + w.rowsOf(18); n != 0 {
		t.Fatalf("%d rows of dropped tables are left", n)
	}
	if s := w.tree.Stats(); s.Counters.DroppedRows == 0 || s.Entries != 597 {
		t.Fatalf("want 597 rows, and some dropped one by one: %+v", s)
	}
	w.check()
	w.finish()
}

// rowsOf counts the entries of a table in files.
func (w *world) rowsOf(table uint32) (n int) {
	v := w.tree.Version()
	defer v.Unref()
	lower, upper := codec.AppendTable(nil, table), codec.AppendTable(nil, table+1)
	for _, s := range v.AppendSources(nil, IterOptions{Lower: lower, Upper: upper, AllVersions: true}) {
		for ok := s.SeekGE(lower); ok; ok = s.Next() {
			n++
		}
		must(w.t, s.Err())
		must(w.t, s.Close())
	}
	return n
}

// TestSnapshotKeepsItsVersions overwrites under snapshots, and compacts.
func TestSnapshotKeepsItsVersions(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 23)
	for range 5 {
		for n := range 100 {
			w.put(n, 20)
		}
		w.snaps = append(w.snaps, w.seq)
		for n := range 100 {
			if n%3 == 0 {
				w.write(testKey(n), "")
			} else {
				w.put(n, 20)
			}
		}
		w.flush()
		w.mergeStep()
	}
	w.settle()
	w.check()
	finishJob(t, w.tree.NewFullCompaction())
	w.check()
	// Every version that a snapshot reads, and the newest, which is a
	// tombstone for every third key.
	if s := w.tree.Stats(); s.Entries != 600 || s.Tombstones != 34 {
		t.Fatalf("%d entries with %d tombstones, want 600 with 34", s.Entries, s.Tombstones)
	}
	w.snaps = w.snaps[2:3]
	finishJob(t, w.tree.NewFullCompaction())
	w.check()
	if s := w.tree.Stats(); s.Entries != 200 || s.Tombstones != 34 {
		t.Fatalf("%d entries with %d tombstones, want 200 with 34", s.Entries, s.Tombstones)
	}
	w.snaps = nil
	finishJob(t, w.tree.NewFullCompaction())
	w.check()
	if s := w.tree.Stats(); s.Entries != 66 || s.Tombstones != 0 {
		t.Fatalf("%d entries with %d tombstones, want 66 with none", s.Entries, s.Tombstones)
	}
	w.finish()
}

// TestPinnedVersionKeepsFiles reads an old version while everything it has is
// merged away.
func TestPinnedVersionKeepsFiles(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 24)
	for n := range 300 {
		w.put(n, 60)
	}
	w.flush()
	v := w.tree.Version()
	sources := v.AppendSources(nil, IterOptions{Snapshot: w.seq})
	old := v.Files()
	for range 4 {
		for n := range 300 {
			w.put(n, 60)
		}
		w.flush()
		w.settle()
	}
	for _, f := range old {
		if _, err := w.fs.Stat(w.tree.path(f.Number)); err != nil {
			t.Fatalf("a pinned file: %v", err)
		}
	}
	n := 0
	for _, s := range sources {
		for ok := s.SeekGE(nil); ok; ok = s.Next() {
			n++
		}
		must(t, s.Err())
		must(t, s.Close())
	}
	if n != 300 {
		t.Fatalf("the pinned version has %d rows, want 300", n)
	}
	v.Unref()
	for _, f := range old {
		if _, err := w.fs.Stat(w.tree.path(f.Number)); err == nil {
			t.Fatalf("file %d is still there", f.Number)
		}
	}
	w.finish()
}

// TestReadersBesideInstalls reads from several goroutines while versions come
// and go.
func TestReadersBesideInstalls(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 25)
	for n := range 300 {
		w.put(n, 60)
	}
	w.flush()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			var row sstable.Row
			for n := g; ctx.Err() == nil; n++ {
				v := w.tree.Version()
				key := testKey(n % 300)
				_, kind, ok, err := v.Get(key, codec.KeyHash(key), codec.MaxSeq, &row)
				if err != nil || !ok || kind != codec.KindPut {
					t.Errorf("get %q: kind %d, ok %v, %v", key, kind, ok, err)
				}
				row.Release()
				v.Unref()
			}
		})
	}
	for range 25 {
		for range 60 {
			w.put(w.rng.IntN(300), 60)
		}
		w.flush()
		w.settle()
	}
	stop()
	wg.Wait()
	w.check()
	w.finish()
}

// TestPruneUncoversNothing scans for values that only shadowed versions have.
func TestPruneUncoversNothing(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 32)
	for n := range 1000 {
		w.write(orderedKey(n), w.text(n, 60))
	}
	w.flush()
	w.settle()
	old := w.seq
	for n := range 300 {
		w.write(orderedKey(n), w.text(n, 60))
	}
	w.flush()
	prune := predicate.Compile(predicate.NewCompare("Seq", predicate.Le, edm.Int64(int64(old))))
	v := w.tree.Version()
	defer v.Unref()
	if len(v.runs) < 2 {
		t.Fatalf("want rows above the bottom: %+v", v.Stats())
	}
	var it merge.Iterator
	it.Init(v.AppendSources(nil, IterOptions{Snapshot: w.seq, Prune: prune}), merge.Options{})
	matches := 0
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if seq, _ := it.Row().Lookup("Seq"); seq.Word() <= old {
			matches++
		}
	}
	must(t, errors.Join(it.Err(), it.Close()))
	if matches != 700 {
		t.Fatalf("%d rows are as old as that, want 700", matches)
	}
	// In the bottom alone, groups are left out: most of a thousand rows.
	seen := 0
	none := predicate.Compile(predicate.NewCompare("Seq", predicate.Le, edm.Int64(100)))
	s := v.AppendSources(nil, IterOptions{Snapshot: w.seq, Prune: none})
	for ok := s[1].SeekGE(nil); ok; ok = s[1].Next() {
		seen++
	}
	if seen < 100 || seen > 500 {
		t.Fatalf("a pruned scan of the bottom shows %d rows, want 100 and not many more", seen)
	}
	for _, s := range s {
		must(t, s.Close())
	}
}

func TestOpenRefusesDamage(t *testing.T) {
	prepared := func(t *testing.T) (*world, manifest.File) {
		w := newWorld(t, vfs.NewMem(), smallOptions(), 26)
		for n := range 300 {
			w.put(n, 60)
		}
		w.flush()
		w.close()
		m := w.tree.Manifest()
		return w, m.Files[len(m.Files)/2]
	}
	cases := map[string]func(w *world, f manifest.File) error{
		"missing": func(w *world, f manifest.File) error { return w.fs.Remove(w.tree.path(f.Number)) },
		"shorter": func(w *world, f manifest.File) error {
			name := w.tree.path(f.Number)
			b, err := vfs.ReadFile(w.fs, name, f.Size)
			must(t, err)
			must(t, w.fs.Remove(name))
			h, err := w.fs.Create(name)
			must(t, err)
			_, err = h.WriteAt(b[:len(b)-1], 0)
			return errors.Join(err, h.Close())
		},
		"swapped": func(w *world, f manifest.File) error {
			other := w.tree.Manifest().Files[0].Number
			return errors.Join(
				w.fs.Rename(w.tree.path(f.Number), "x"),
				w.fs.Rename(w.tree.path(other), w.tree.path(f.Number)),
				w.fs.Rename("x", w.tree.path(other)))
		},
		"footer": func(w *world, f manifest.File) error {
			return w.fs.(*vfs.Mem).Patch(w.tree.path(f.Number), f.Size-100, []byte{0xaa})
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			w, f := prepared(t)
			must(t, damage(w, f))
			m, err := manifest.Read(w.fs, testDir)
			must(t, err)
			_, err = Open(Options{FS: w.fs, Dir: testDir}, m)
			if !errors.Is(err, corrupt.ErrCorrupt) {
				t.Fatalf("Open: %v, want a corrupt.Error", err)
			}
		})
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 27)
	for n := range 300 {
		w.put(n, 60)
	}
	w.flush()
	files := w.files()
	f := files[len(files)/2]
	must(t, w.fs.(*vfs.Mem).Patch(w.tree.path(f.Number), f.Size/3, []byte{1, 2, 3}))
	got, err := w.tree.Verify(context.Background())
	must(t, err)
	if len(got.Findings) == 0 || got.Files != len(files) || got.Entries != 300 {
		t.Fatalf("got %+v, want a finding among %d files and 300 entries", got, len(files))
	}
	for _, c := range got.Findings {
		if c.File != filename.Make(filename.SSTable, f.Number) {
			t.Fatalf("finding %v, want one of %s", c, filename.Make(filename.SSTable, f.Number))
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := w.tree.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Verify with a cancelled context: %v", err)
	}
}

// TestMergeMeetsDamage reports damage of an input and keeps the inputs.
func TestMergeMeetsDamage(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 28)
	for range 2 {
		for n := range 300 {
			w.put(n, 60)
		}
		w.flush()
	}
	f := w.files()[1]
	must(t, w.fs.(*vfs.Mem).Patch(w.tree.path(f.Number), f.Size/3, []byte{1, 2, 3}))
	var c *corrupt.Error
	if err := runErr(w.tree.NewFullCompaction()); !errors.As(err, &c) || c.File != filename.Make(filename.SSTable, f.Number) {
		t.Fatalf("got %v, want damage of %s", err, filename.Make(filename.SSTable, f.Number))
	}
	if !slices.ContainsFunc(w.files(), func(g manifest.File) bool { return g.Number == f.Number }) {
		t.Fatalf("file %d is no longer listed", f.Number)
	}
	w.checkFiles()
}

func TestContextPausesJob(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 29)
	for n := range 3000 {
		w.put(n, 30)
	}
	j := w.newFlush()
	ctx, stop := context.WithCancel(context.Background())
	if done, err := j.Step(ctx); done || err != nil {
		t.Fatalf("first step: %v, %v", done, err)
	}
	stop()
	if _, err := j.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("step after the end of ctx: %v", err)
	}
	finishJob(t, j)
	w.flushed = w.seq
	w.check()
	if done, err := j.Step(context.Background()); !done || err != nil {
		t.Fatalf("step after the end: %v, %v", done, err)
	}
	j.Abort()
	w.finish()
}

func TestAbort(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 30)
	for n := range 3000 {
		w.put(n, 30)
	}
	for steps := range 12 {
		j := w.newFlush()
		for range steps {
			_, err := j.Step(context.Background())
			must(t, err)
		}
		j.Abort()
		j.Abort()
		if _, err := j.Step(context.Background()); err == nil {
			t.Fatal("a step after Abort")
		}
		w.checkFiles()
	}
	w.flush()
	w.check()
	w.finish()
}

func TestUpdate(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 31)
	must(t, w.tree.Update(manifest.Edit{HighWater: 77, Logs: []manifest.Log{{Number: w.tree.NewNumber()}}}))
	w.put(1, 10)
	w.flush()
	for _, m := range []manifest.Manifest{w.tree.Manifest(), *mustRead(t, w.fs)} {
		if m.HighWater != 77 || len(m.Logs) != 1 || m.Logs[0].Number != 1 || len(m.Files) != 1 || m.LastSeq != w.seq {
			t.Fatalf("manifest %+v", m)
		}
	}
	must(t, w.tree.Close())
	must(t, w.tree.Close())
	if err := w.tree.Update(manifest.Edit{}); err == nil {
		t.Fatal("an update after Close")
	}
}

// TestNumberDuringInstall asks for a number while the manifest is written, as a
// writer does who opens a log segment: it must not wait for the disk.
func TestNumberDuringInstall(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	w := newWorld(t, fsys, smallOptions(), 32)
	var numbers []uint64
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if w.tree.mu.TryLock() {
			w.tree.mu.Unlock()
			t.Errorf("%v happens without the lock, so this shows nothing", op)
		}
		numbers = append(numbers, w.tree.NewNumber())
		return nil
	})
	must(t, w.tree.Update(manifest.Edit{HighWater: 1}))
	fsys.SetRule(nil)
	if len(numbers) == 0 {
		t.Fatal("the manifest was not written")
	}
	must(t, w.tree.Update(manifest.Edit{HighWater: 2}))
	if last := numbers[len(numbers)-1]; mustRead(t, fsys).NextFile != last+1 || w.tree.NewNumber() != last+1 {
		t.Errorf("the next manifest says %d, the last number was %d", mustRead(t, fsys).NextFile, last)
	}
}

func mustRead(t *testing.T, fsys vfs.FS) *manifest.Manifest {
	m, err := manifest.Read(fsys, testDir)
	must(t, err)
	return m
}
