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
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestSameSeedSameBytes runs the same random operations twice.
func TestSameSeedSameBytes(t *testing.T) {
	var dumps [2]string
	for i := range dumps {
		h := newHarness(t, vfs.NewMem(), smallOptions(), 21)
		for range 2500 {
			h.deterministicStep()
		}
		h.close()
		dump, err := vfs.Dump(h.fs, testDir)
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

func (h *harness) deterministicStep() {
	switch n := h.rng.IntN(100); {
	case n < 80:
		h.put(h.rng.IntN(400), h.rng.IntN(100))
	case n < 95:
		h.write(testKey(h.rng.IntN(400)), "")
	case n < 97:
		h.flush()
	default:
		h.compactionStep()
	}
}

func TestDroppedTable(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 22)
	rows := func(table uint32, n int) {
		for i := range n {
			h.write(codec.AppendKey(nil, table, fmt.Sprintf("p%d", i/40), fmt.Sprint(i)), h.text(i, 80))
		}
	}
	rows(16, 300)
	rows(17, 300)
	rows(18, 3) // shares a file with the next
	rows(19, 297)
	h.flush()
	h.compactAll()
	h.snaps = []uint64{h.seq}
	h.drop(17)
	h.drop(18)
	h.compactAll()
	if n := h.rowsOf(17); n != 300 {
		t.Fatalf("the snapshot sees %d rows of the dropped table, want 300", n)
	}
	h.check()
	h.snaps = nil
	before := h.tree.Stats().Counters
	h.compactAll()
	s := h.tree.Stats()
	if s.Counters.DroppedFiles == before.DroppedFiles || s.Counters.CompactedFiles > before.CompactedFiles+1 {
		t.Fatalf("want whole files dropped, and only the file of two tables rewritten: %+v, then %+v", before, s.Counters)
	}
	h.check()
	finishJob(t, h.tree.NewFullCompaction())
	if n := h.rowsOf(17) + h.rowsOf(18); n != 0 {
		t.Fatalf("%d rows of dropped tables remain", n)
	}
	if s := h.tree.Stats(); s.Counters.DroppedRows == 0 || s.Entries != 597 {
		t.Fatalf("want 597 rows, and some dropped individually: %+v", s)
	}
	h.check()
	h.finish()
}

// rowsOf counts the entries of a table in files.
func (h *harness) rowsOf(table uint32) (n int) {
	v := h.tree.Version()
	defer v.Unref()
	lower, upper := codec.AppendTable(nil, table), codec.AppendTable(nil, table+1)
	for _, s := range sourcesOf(v, sstable.IterOptions{Lower: lower, Upper: upper, AllVersions: true}) {
		for ok := s.SeekGE(lower); ok; ok = s.Next() {
			n++
		}
		must(h.t, s.Err())
		must(h.t, s.Close())
	}
	return n
}

// TestSnapshotKeepsItsVersions overwrites rows while snapshots are registered, and
// compacts.
func TestSnapshotKeepsItsVersions(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 23)
	for range 5 {
		for n := range 100 {
			h.put(n, 20)
		}
		h.snaps = append(h.snaps, h.seq)
		for n := range 100 {
			if n%3 == 0 {
				h.write(testKey(n), "")
			} else {
				h.put(n, 20)
			}
		}
		h.flush()
		h.compactionStep()
	}
	h.compactAll()
	h.check()
	finishJob(t, h.tree.NewFullCompaction())
	h.check()
	// All versions that snapshots read, and the newest version, which is a tombstone
	// for every third key.
	if s := h.tree.Stats(); s.Entries != 600 || s.Tombstones != 34 {
		t.Fatalf("%d entries with %d tombstones, want 600 with 34", s.Entries, s.Tombstones)
	}
	h.snaps = h.snaps[2:3]
	finishJob(t, h.tree.NewFullCompaction())
	h.check()
	if s := h.tree.Stats(); s.Entries != 200 || s.Tombstones != 34 {
		t.Fatalf("%d entries with %d tombstones, want 200 with 34", s.Entries, s.Tombstones)
	}
	h.snaps = nil
	finishJob(t, h.tree.NewFullCompaction())
	h.check()
	if s := h.tree.Stats(); s.Entries != 66 || s.Tombstones != 0 {
		t.Fatalf("%d entries with %d tombstones, want 66 with none", s.Entries, s.Tombstones)
	}
	h.finish()
}

// TestPinnedVersionKeepsFiles reads an old version after compactions consumed all of its
// files.
func TestPinnedVersionKeepsFiles(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 24)
	for n := range 300 {
		h.put(n, 60)
	}
	h.flush()
	v := h.tree.Version()
	sources := sourcesOf(v, sstable.IterOptions{Snapshot: h.seq})
	old := v.Files()
	for range 4 {
		for n := range 300 {
			h.put(n, 60)
		}
		h.flush()
		h.compactAll()
	}
	for _, f := range old {
		if _, err := h.fs.Stat(h.tree.path(f.Number)); err != nil {
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
		if _, err := h.fs.Stat(h.tree.path(f.Number)); err == nil {
			t.Fatalf("file %d is still there", f.Number)
		}
	}
	h.finish()
}

// TestReadersDuringInstalls reads from several goroutines while versions are installed.
func TestReadersDuringInstalls(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 25)
	for n := range 300 {
		h.put(n, 60)
	}
	h.flush()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			var row sstable.Row
			for n := g; ctx.Err() == nil; n++ {
				v := h.tree.Version()
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
			h.put(h.rng.IntN(300), 60)
		}
		h.flush()
		h.compactAll()
	}
	stop()
	wg.Wait()
	h.check()
	h.finish()
}

// TestRunsApartShareASource counts the sources of runs of which some overlap.
func TestRunsApartShareASource(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 33)
	for _, c := range []struct{ from, to, sources int }{{0, 300, 1}, {600, 900, 1}, {100, 700, 2}, {300, 600, 2}, {910, 950, 2}, {0, 950, 3}} {
		for n := c.from; n < c.to; n += 2 {
			h.write(orderedKey(n), h.text(n, 60))
		}
		h.flush()
		h.check()
		v := h.tree.Version()
		sources := sourcesOf(v, sstable.IterOptions{Snapshot: h.seq})
		if len(sources) != c.sources {
			t.Errorf("%d sources for %d runs after %d to %d, want %d", len(sources), len(v.runs), c.from, c.to, c.sources)
		}
		for _, s := range sources {
			must(t, s.Close())
		}
		v.Unref()
	}
	h.finish()
}

func TestOpenRefusesDamage(t *testing.T) {
	prepared := func(t *testing.T) (*harness, manifest.File) {
		h := newHarness(t, vfs.NewMem(), smallOptions(), 26)
		for n := range 300 {
			h.put(n, 60)
		}
		h.flush()
		h.close()
		m := h.tree.Manifest()
		return h, m.Files[len(m.Files)/2]
	}
	cases := map[string]func(h *harness, f manifest.File) error{
		"missing": func(h *harness, f manifest.File) error { return h.fs.Remove(h.tree.path(f.Number)) },
		"shorter": func(h *harness, f manifest.File) error {
			name := h.tree.path(f.Number)
			b, err := vfs.ReadFile(h.fs, name, f.Size)
			must(t, err)
			must(t, h.fs.Remove(name))
			disk, err := h.fs.Create(name)
			must(t, err)
			_, err = disk.WriteAt(b[:len(b)-1], 0)
			return errors.Join(err, disk.Close())
		},
		"swapped": func(h *harness, f manifest.File) error {
			other := h.tree.Manifest().Files[0].Number
			return errors.Join(
				h.fs.Rename(h.tree.path(f.Number), "x"),
				h.fs.Rename(h.tree.path(other), h.tree.path(f.Number)),
				h.fs.Rename("x", h.tree.path(other)))
		},
		"without entries": func(h *harness, f manifest.File) error {
			must(t, h.fs.Remove(h.tree.path(f.Number)))
			disk, err := h.fs.Create(h.tree.path(f.Number))
			must(t, err)
			info, err := sstable.NewWriter(disk, sstable.WriterOptions{DBID: f.Origin, Number: f.Number}).Finish()
			must(t, err)
			m := h.tree.Manifest()
			i := slices.IndexFunc(m.Files, func(other manifest.File) bool { return other.Number == f.Number })
			user, _ := bound.Split(f.Smallest)
			m.Files[i].Size, m.Files[i].Hash, m.Files[i].Smallest = info.Size, info.Hash, bound.Clip(user, bound.ClippedFirst)
			return errors.Join(disk.Close(), manifest.Write(h.fs, testDir, &m))
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			h, f := prepared(t)
			must(t, damage(h, f))
			m, err := manifest.Read(h.fs, testDir)
			must(t, err)
			counted := &countedFS{FS: h.fs}
			_, err = Open(Options{FS: counted, Dir: testDir}, m)
			if !errors.Is(err, corrupt.ErrCorrupt) {
				t.Fatalf("Open: %v, want a corrupt.Error", err)
			}
			if n := counted.open.Load(); n != 0 {
				t.Errorf("%d files are open", n)
			}
		})
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 27)
	for n := range 300 {
		h.put(n, 60)
	}
	h.flush()
	files := h.files()
	f := files[len(files)/2]
	must(t, h.fs.(*vfs.Mem).Patch(h.tree.path(f.Number), f.Size/3, []byte{1, 2, 3}))
	got, err := h.tree.Verify(context.Background())
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
	if _, err := h.tree.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Verify with a cancelled context: %v", err)
	}
}

// TestCompactionOfDamagedFile checks that damage of an input is reported and that the
// inputs remain.
func TestCompactionOfDamagedFile(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 28)
	for range 2 {
		for n := range 300 {
			h.put(n, 60)
		}
		h.flush()
	}
	f := h.files()[1]
	must(t, h.fs.(*vfs.Mem).Patch(h.tree.path(f.Number), f.Size/3, []byte{1, 2, 3}))
	var c *corrupt.Error
	if err := runErr(h.tree.NewFullCompaction()); !errors.As(err, &c) || c.File != filename.Make(filename.SSTable, f.Number) {
		t.Fatalf("got %v, want damage of %s", err, filename.Make(filename.SSTable, f.Number))
	}
	if !slices.ContainsFunc(h.files(), func(g manifest.File) bool { return g.Number == f.Number }) {
		t.Fatalf("file %d is not listed", f.Number)
	}
	h.checkFiles()
}

func TestContextPausesJob(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 29)
	for n := range 3000 {
		h.put(n, 30)
	}
	j := h.newFlush()
	ctx, stop := context.WithCancel(context.Background())
	if done, err := j.Step(ctx); done || err != nil {
		t.Fatalf("first step: %v, %v", done, err)
	}
	stop()
	if _, err := j.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("step after the end of ctx: %v", err)
	}
	finishJob(t, j)
	h.flushed = h.seq
	h.check()
	if done, err := j.Step(context.Background()); !done || err != nil {
		t.Fatalf("step after the end: %v, %v", done, err)
	}
	j.Abort()
	h.finish()
}

func TestAbort(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 30)
	for n := range 3000 {
		h.put(n, 30)
	}
	for steps := range 12 {
		j := h.newFlush()
		for range steps {
			_, err := j.Step(context.Background())
			must(t, err)
		}
		j.Abort()
		j.Abort()
		if _, err := j.Step(context.Background()); err == nil {
			t.Fatal("a step after Abort")
		}
		h.checkFiles()
	}
	h.flush()
	h.check()
	h.finish()
}

func TestUpdate(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 31)
	must(t, h.tree.Update(manifest.Edit{HighWater: 77, Logs: []manifest.Log{{Number: h.tree.NewNumber()}}}))
	h.put(1, 10)
	h.flush()
	for _, m := range []manifest.Manifest{h.tree.Manifest(), *mustRead(t, h.fs)} {
		if m.HighWater != 77 || len(m.Logs) != 1 || m.Logs[0].Number != 1 || len(m.Files) != 1 || m.LastSeq != h.seq {
			t.Fatalf("manifest %+v", m)
		}
	}
	must(t, h.tree.Close())
	must(t, h.tree.Close())
	if err := h.tree.Update(manifest.Edit{}); err == nil {
		t.Fatal("an update after Close")
	}
}

// TestOneCompaction asks for other compactions while one is under way.
func TestOneCompaction(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 34)
	for table := range uint32(2) {
		for n := range 100 {
			h.write(codec.AppendKey(nil, 16+table, "p", fmt.Sprint(n)), h.text(n, 60))
		}
		h.flush()
	}
	jobs := []func() *Job{h.tree.NewFullCompaction, h.tree.NewReclaim, h.tree.PickCompaction}
	for i, begin := range jobs {
		job := begin()
		if job == nil {
			t.Fatalf("no job %d", i)
		}
		h.dropped[17] = h.seq
		for other, begin := range jobs {
			if begin() != nil {
				t.Errorf("job %d began beside job %d", other, i)
			}
		}
		before := h.tree.Counters()
		must(t, h.tree.RemoveDropped(t.Context()))
		if h.tree.Counters() != before {
			t.Errorf("files are removed beside job %d", i)
		}
		job.Abort()
		delete(h.dropped, 17)
	}
	h.dropped[17] = h.seq
	must(t, h.tree.RemoveDropped(t.Context()))
	must(t, h.tree.RemoveDropped(t.Context())) // nothing is left
	if n := h.rowsOf(17); n > 0 {
		t.Errorf("%d rows of the dropped table are left", n)
	}
	h.finish()
}

// TestNumberDuringInstall takes a number while the manifest is written, as a writer that
// opens a log segment does. It must not wait for the disk.
func TestNumberDuringInstall(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	h := newHarness(t, fsys, smallOptions(), 32)
	var numbers []uint64
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if h.tree.mu.TryLock() {
			h.tree.mu.Unlock() // +checklocksignore: TryLock
			t.Errorf("%v runs without the lock, so this test proves nothing", op)
		}
		numbers = append(numbers, h.tree.NewNumber())
		return nil
	})
	must(t, h.tree.Update(manifest.Edit{HighWater: 1}))
	fsys.SetRule(nil)
	if len(numbers) == 0 {
		t.Fatal("the manifest was not written")
	}
	must(t, h.tree.Update(manifest.Edit{HighWater: 2}))
	if last := numbers[len(numbers)-1]; mustRead(t, fsys).NextFile != last+1 || h.tree.NewNumber() != last+1 {
		t.Errorf("the next manifest says %d, the last number was %d", mustRead(t, fsys).NextFile, last)
	}
}

func mustRead(t *testing.T, fsys vfs.FS) *manifest.Manifest {
	m, err := manifest.Read(fsys, testDir)
	must(t, err)
	return m
}
