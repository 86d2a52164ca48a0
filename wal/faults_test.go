package wal

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// failing returns a file system whose operations fail with the error of before. A
// failing read or write transfers half of its bytes.
func failing(under vfs.FS, before func(vfs.Op) error) vfs.FS {
	return errorfs.Wrap(under, func(op vfs.Op) *errorfs.Fault {
		if err := before(op); err != nil {
			return &errorfs.Fault{Err: err, Short: int(op.Len / 2)}
		}
		return nil
	})
}

// failAt fails operation number at and counts the operations in n.
func failAt(under vfs.FS, at int, n *int) vfs.FS {
	return failing(under, func(vfs.Op) error {
		if *n++; *n == at {
			return syscall.EIO
		}
		return nil
	})
}

// TestReaderFaults fails each operation of each function that reads a segment, with
// records larger than a read.
func TestReaderFaults(t *testing.T) {
	race.SkipOneGoroutine(t)
	mem := newMem(t)
	s, err := create(mem, testName, testHeader(), make([]byte, 4<<20), CreateOptions{NoPreallocate: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		n := 2*scanChunk + 1000*i
		if i == 0 {
			n = readChunk - HeaderLen - RecordHeaderLen // ends where a read does
		}
		appendRecord(s, Record{FirstSeq: 100 + uint64(i), Count: 1}, bytes.Repeat([]byte{byte(i + 1)}, n))
		if i < 3 {
			err = s.Sync(s.Tail())
		}
	}
	if err = errors.Join(err, s.Write(s.Tail()), s.Close()); err != nil {
		t.Fatal(err)
	}
	size := int(s.Tail())
	torn := readFile(t, mem, testName)
	writeFile(t, mem, "db/ahead.wal", append(torn[:size:size], make([]byte, 5000)...))
	torn[size-3*scanChunk] ^= 1 // in the fourth record: the fifth proves the third
	writeFile(t, mem, "db/torn.wal", torn)
	writeFile(t, mem, "db/header.wal", append([]byte{1}, torn[1:]...))
	writeFile(t, mem, "db/zeros.wal", make([]byte, size))
	skip := func(RecordView) error { return nil }
	for _, c := range []struct {
		name string
		run  func(fsys vfs.FS) error
		want error
	}{
		{"replay", func(fsys vfs.FS) error {
			end, err := Replay(fsys, testName, imageOptions(size), skip)
			return wantRecords(end, 5, err)
		}, nil},
		{"replay before zeros", func(fsys vfs.FS) error {
			end, err := Replay(fsys, "db/ahead.wal", imageOptions(size+5000), skip)
			return wantRecords(end, 5, err)
		}, nil},
		{"replay torn", func(fsys vfs.FS) error {
			end, err := Replay(fsys, "db/torn.wal", imageOptions(size), skip)
			return wantRecords(end, 3, err)
		}, nil},
		{"replay beside a writer", func(fsys vfs.FS) error {
			end, err := ReplayDurable(fsys, testName, imageOptions(size), skip)
			return wantRecords(end, 3, err)
		}, nil},
		{"replay without a header", func(fsys vfs.FS) error {
			_, err := Replay(fsys, "db/header.wal", imageOptions(size), skip)
			return err
		}, corrupt.ErrCorrupt},
		{"inspect", func(fsys vfs.FS) error {
			info, err := Inspect(fsys, testName, testDB, 7)
			if err == nil && (!info.Records || info.Bytes != int64(size)) {
				return errors.New("no record was found")
			}
			return err
		}, nil},
		{"blank", func(fsys vfs.FS) error {
			blank, err := Blank(fsys, "db/zeros.wal")
			if err == nil && !blank {
				return errors.New("not blank")
			}
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for at := 1; ; at++ {
				n := 0
				err := c.run(failAt(mem, at, &n))
				if n < at {
					if !errors.Is(err, c.want) {
						t.Fatalf("got %v, want %v", err, c.want)
					}
					t.Logf("%d operations", n)
					return
				}
				if !errors.Is(err, syscall.EIO) {
					t.Fatalf("operation %d failed: got %v", at, err)
				}
			}
		})
	}
}

// imageOptions are testOptions with an image of n bytes.
func imageOptions(n int) ReplayOptions {
	o := testOptions()
	o.Image = make([]byte, n)
	return o
}

func wantRecords(end End, n int, err error) error {
	if err == nil && end.Records != n {
		return errors.New("a record is missing")
	}
	return err
}
