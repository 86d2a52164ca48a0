package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// fixSum sets the sum of a changed manifest.
func fixSum(b []byte) {
	end := len(b) - sumLen
	binary.LittleEndian.PutUint64(b[end:], sum(b[:end], [16]byte(b[24:40])))
}

// TestFields damages each field of the head, with a wrong and with a correct sum.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		name string
		off  int
		with []byte
		want string // the error with a correct sum; empty if there is none
	}{
		{"magic", 0, []byte("x"), "magic"},
		{"version newer", 8, []byte{4}, "newer format: version 4"},
		{"version 0", 8, []byte{0}, "version is 0"},
		{"reserved", 12, []byte{1}, "version is 3, then 1"},
		{"length", 16, []byte{1}, "length is"},
		{"length huge", 23, []byte{0xff}, "length is"},
		{"database", 24, []byte{1}, ""},
		{"next file", 40, []byte{30}, "number 30, want 1 to 29"},
		{"high water", 48, []byte{1}, ""},
		{"high water below a loaded file", 55, []byte{7}, "loaded with the timestamp 638000000000000000"},
		{"last sequence", 56, []byte{1}, "sequences 7 to 40"},
		{"logs", 64, []byte{3}, "exceeds the manifest"},
		{"logs beyond the end", 64, []byte{70, 0, 0, 0, 0}, "70 logs and 0 files in"},
		{"logs huge", 64, []byte{0xff, 0xff, 0xff, 0xff}, "logs and"},
		{"files", 68, []byte{7}, "after the last file"},
		{"files more", 68, []byte{9}, "exceeds the manifest"},
		{"files huge", 70, []byte{0xff}, "files in"},
		{"required feature", 73, []byte{1}, "unknown required feature: bit 8"},
		{"optional feature", 80, []byte{1}, ""},
		{"epoch", 88, []byte{1}, ""},
		{"extensions length", 96, []byte{1}, "extension area at 0"},
		{"extensions huge", 99, []byte{1}, "extension area of 16777232 bytes"},
		{"extensions negative", 103, []byte{0xff}, "extension area of"},
		{"required record", 106, []byte{1}, "extension record of type 28673"},
		{"record flags", 106, []byte{2}, "flags 0x2"},
		{"record length", 108, []byte{9}, "record of 9 bytes, left 8"},
		{"record length huge", 111, []byte{0xff}, "left 8"},
		{"log number", 120, []byte{31}, "log 30 is listed after"},
		{"log seal", 131, []byte{0x81}, "sealed at"},
		{"log sealed and proven", 132, []byte{1}, "both sealed"},
		{"log proven", 147, []byte{0x81}, "proven to"},
		{"file number", 152, []byte{31}, "number 31"},
		{"file size", 167, []byte{0x80}, "size is"},
		{"smallest length", 220, []byte{0xff, 0xff}, "exceeds the manifest"},
		{"largest length", 222, []byte{0xff, 0xff}, "exceeds the manifest"},
		{"origin", 224, []byte{1}, ""},
		{"file extensions beyond the end", 240, []byte{0xff, 0xff}, "exceeds the manifest"},
		{"file extensions huge", 242, []byte{0xff}, "exceeds the manifest"},
		{"file extensions greatest", 243, []byte{0xff}, "exceeds the manifest"},
		{"new keys", 244, []byte{1}, ""},
		{"new keys huge", 246, []byte{2}, "share of new keys is 180224, at most 65536"},
		{"stamp of a file with several sequences", 248, []byte{1}, "loaded with the timestamp 1, sequences 7 to 40 and 3 tombstones"},
		{"stamp above the high-water mark", 248, []byte{0, 0, 0, 0, 0, 0, 0, 0xff}, "loaded with the timestamp 18374686479671623680"},
		{"required record of a file", 276, []byte{1}, "extension record of type 28674"},
		{"record flags of a file", 276, []byte{4}, "flags 0x4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mustEncode(t, sample())
			copy(b[c.off:], c.with)
			if _, err := decode(b); !errors.Is(err, corrupt.ErrCorrupt) || errors.Is(err, ErrNewerFormat) {
				t.Fatalf("wrong sum: got %v", err)
			}
			fixSum(b)
			_, err := decode(b)
			if c.want == "" {
				if err != nil {
					t.Fatalf("correct sum: got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("correct sum: got %v, want %q", err, c.want)
			}
			if errors.Is(err, ErrNewerFormat) == errors.Is(err, corrupt.ErrCorrupt) {
				t.Fatalf("correct sum: %v is both or neither of newer and corrupt", err)
			}
		})
	}
}

// TestEveryBitAndLength flips every bit of a manifest, truncates it at every byte and
// appends to it: decode finds all of that.
func TestEveryBitAndLength(t *testing.T) {
	b := mustEncode(t, sample())
	check := func(what string, b []byte) {
		t.Helper()
		m, err := decode(b)
		var ce *corrupt.Error
		if m != nil || !errors.As(err, &ce) || ce.File != filename.Manifest {
			t.Fatalf("%s: got %v, %v", what, m, err)
		}
	}
	for bit := range len(b) * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("bit %d", bit), b)
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range b {
		check(fmt.Sprintf("truncated at %d", n), b[:n])
		if n >= headLen2+sumLen {
			// With correct length and sum, the checks of the head and of the lists find it.
			short := bytes.Clone(b[:n])
			binary.LittleEndian.PutUint64(short[16:], uint64(n))
			fixSum(short)
			check(fmt.Sprintf("truncated at %d with a correct sum", n), short)
		}
	}
	check("one byte appended", append(bytes.Clone(b), 0))
	check("twice", append(bytes.Clone(b), b...))
}

// TestReadHugeFile reads a file with a huge size and length field.
func TestReadHugeFile(t *testing.T) {
	mem := newMem(t)
	b := mustEncode(t, sample())
	writeBytes(t, mem, "db/MANIFEST", b)
	f, err := mem.OpenReadWrite("db/MANIFEST")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Preallocate(0, 1<<38); err != nil {
		t.Fatal(err)
	}
	size := binary.LittleEndian.AppendUint64(nil, 1<<38)
	if _, err := f.WriteAt(size, 16); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(mem, "db"); !errors.Is(err, corrupt.ErrCorrupt) || !strings.Contains(err.Error(), "at most") {
		t.Fatalf("got %v", err)
	}
	if err := errors.Join(f.Close(), mem.Remove("db/MANIFEST")); err != nil {
		t.Fatal(err)
	}
	writeBytes(t, mem, "db/MANIFEST", b[:10])
	if _, err := Read(mem, "db"); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Fatalf("short: got %v", err)
	}
}

// TestLeftoverTemp writes a manifest after a crash left a temporary one.
func TestLeftoverTemp(t *testing.T) {
	mem := newMem(t)
	writeBytes(t, mem, "db/MANIFEST.tmp", make([]byte, 100_000))
	if _, err := Read(mem, "db"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("with a temporary file only: %v", err)
	}
	if err := Write(mem, "db", sample()); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(mem, "db"); err != nil || cmp.Diff(sample(), got) != "" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// second returns the manifest after sample.
func second() *Manifest {
	m := sample()
	m.NextFile, m.LastSeq = 50, 90
	m.Files = append(m.Files[1:], file(45, 0, 6, "b", "q"))
	m.Sort()
	return m
}

// TestCrash cuts the power at every operation of a Write: Read returns the old or the
// new manifest, and the new one after Write has returned.
func TestCrash(t *testing.T) {
	for _, leftover := range []bool{false, true} {
		mem := newMem(t)
		if err := Write(mem, "db", sample()); err != nil {
			t.Fatal(err)
		}
		if leftover {
			writeBytes(t, mem, "db/MANIFEST.tmp", make([]byte, 3000))
		}
		old, next := mustEncode(t, sample()), mustEncode(t, second())
		seen := map[string]int{}
		check := func(what string, disk *vfs.Mem, done bool) {
			t.Helper()
			m, err := Read(disk, "db")
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			switch b := mustEncode(t, m); {
			case bytes.Equal(b, next):
				seen["next"]++
			case bytes.Equal(b, old) && !done:
				seen["old"]++
			default:
				t.Fatalf("%s: got %+v", what, m)
			}
			// The next Write succeeds in either state.
			if err := Write(disk, "db", second()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		mem.OnOp(func(op vfs.Op) {
			for _, mode := range vfs.CrashModes {
				for seed := range uint64(10) {
					check(fmt.Sprintf("%v, mode %v, seed %d", op, mode, seed), mem.Crash(vfs.CrashOptions{Mode: mode, Seed: seed}), false)
				}
			}
		})
		if err := Write(mem, "db", second()); err != nil {
			t.Fatal(err)
		}
		mem.OnOp(nil)
		for _, mode := range vfs.CrashModes {
			check(fmt.Sprintf("after it, mode %v", mode), mem.Crash(vfs.CrashOptions{Mode: mode}), true)
		}
		if seen["old"] == 0 || seen["next"] == 0 {
			t.Fatalf("states seen: %v", seen)
		}
	}
}

// failAt fails operation number at and counts the operations in n. A failing read or
// write transfers half of its bytes.
func failAt(under vfs.FS, at int, n *int) vfs.FS {
	return errorfs.Wrap(under, func(op vfs.Op) *errorfs.Fault {
		if *n++; *n == at {
			return &errorfs.Fault{Err: syscall.EIO, Short: int(op.Len / 2)}
		}
		return nil
	})
}

// TestFaults fails each operation of Write and Read.
func TestFaults(t *testing.T) {
	for at := 1; ; at++ {
		mem := newMem(t)
		if err := Write(mem, "db", sample()); err != nil {
			t.Fatal(err)
		}
		n := 0
		err := Write(failAt(mem, at, &n), "db", second())
		m, rerr := Read(mem, "db")
		if rerr != nil || (cmp.Diff(m, sample()) != "" && cmp.Diff(m, second()) != "") {
			t.Fatalf("operation %d failed: read %+v, %v", at, m, rerr)
		}
		if n < at {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d failed: Write returned %v", at, err)
		}
		if err := Write(mem, "db", second()); err != nil {
			t.Fatalf("operation %d failed: the next Write: %v", at, err)
		}
	}
	mem := newMem(t)
	if err := Write(mem, "db", sample()); err != nil {
		t.Fatal(err)
	}
	for at := 1; ; at++ {
		n := 0
		_, err := Read(failAt(mem, at, &n), "db")
		if n < at {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, corrupt.ErrCorrupt) {
			t.Fatalf("operation %d failed: Read returned %v", at, err)
		}
	}
}

// TestShortRead reads a file that ends before its size.
func TestShortRead(t *testing.T) {
	mem := newMem(t)
	if err := Write(mem, "db", sample()); err != nil {
		t.Fatal(err)
	}
	fsys := errorfs.Wrap(mem, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "read" {
			return &errorfs.Fault{Err: io.EOF, Short: int(op.Len) - 1}
		}
		return nil
	})
	if _, err := Read(fsys, "db"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
}

// TestOneWrongRead returns wrong bytes once: Read reads again.
func TestOneWrongRead(t *testing.T) {
	mem := newMem(t)
	if err := Write(mem, "db", sample()); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= 2; at++ {
		n := 0
		fsys := errorfs.Wrap(mem, func(op vfs.Op) *errorfs.Fault {
			if op.Kind != "read" {
				return nil
			}
			if n++; n != at {
				return nil
			}
			return &errorfs.Fault{Corrupt: func(p []byte, _ int64) { p[17] ^= 1 }}
		})
		if m, err := Read(fsys, "db"); err != nil || cmp.Diff(sample(), m) != "" || n != at+2 {
			t.Fatalf("read %d was wrong: got %+v, %v after %d reads", at, m, err, n)
		}
	}
}
