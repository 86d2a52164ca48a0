package vfs_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

func BenchmarkMemWriteSync(b *testing.B) {
	for _, kind := range []string{"plain", "crash"} {
		b.Run("mem="+kind, func(b *testing.B) {
			m := vfs.NewMem()
			if kind == "crash" {
				m = vfs.NewCrashMem()
			}
			f, err := m.Create("wal")
			if err != nil {
				b.Fatal(err)
			}
			p := bytes.Repeat([]byte("x"), 300)
			var off int64
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.WriteAt(p, off); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				off = (off + 300) % (64 << 20)
			}
		})
	}
}

// smallDB returns a file system of about 200 KiB: a manifest, a lock, four sstables, a
// log with an unsynced tail, and an unsynced name.
func smallDB(tb testing.TB) *vfs.Mem {
	tb.Helper()
	m := vfs.NewCrashMem()
	write := func(name string, size, synced int) {
		f, err := m.Create(name)
		if err != nil {
			tb.Fatal(err)
		}
		p := bytes.Repeat([]byte(name), size/len(name)+1)
		if _, err := f.WriteAt(p[:synced], 0); err != nil {
			tb.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			tb.Fatal(err)
		}
		if err := m.SyncDir("/"); err != nil {
			tb.Fatal(err)
		}
		for off := synced; off < size; off += 300 {
			if _, err := f.WriteAt(p[off:min(off+300, size)], int64(off)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	write("LOCK", 20, 20)
	write("MANIFEST", 900, 900)
	for i := range 4 {
		write(fmt.Sprintf("%06d.sst", i), 33<<10, 33<<10)
	}
	write("000005.wal", 64<<10, 60<<10)
	if err := m.Link("LOCK", "pending"); err != nil {
		tb.Fatal(err)
	}
	return m
}

func BenchmarkCrash(b *testing.B) {
	m := smallDB(b)
	for _, mode := range append(slices.Clone(vfs.CrashModes), "lying") {
		b.Run("mode="+mode, func(b *testing.B) {
			b.ReportAllocs()
			var seed uint64
			for b.Loop() {
				seed++
				m.Crash(vfs.CrashOptions{Mode: mode, Seed: seed})
			}
		})
	}
	b.Run("clone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Clone()
		}
	})
}
