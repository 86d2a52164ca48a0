package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// FuzzLog reads any bytes as a segment. A read after a repair of the tail, and a read with a
// known end, return the same records. A read beside a writer returns a prefix of them. Only
// documented errors are allowed.
func FuzzLog(f *testing.F) {
	golden := goldenFiles(f)["000006.wal"]
	f.Add(golden, int64(0), int64(0), false)
	f.Add(golden, int64(len(golden)), int64(0), true)
	f.Add(golden[:0x1208], int64(0), int64(0), false)
	f.Add(golden[:0x1100], int64(0), int64(0x1070), true)
	f.Add(golden[:4096], int64(0), int64(0), true)
	f.Add(append(bytes.Clone(golden[:0x1208]), make([]byte, 600)...), int64(0), int64(0), false)
	f.Add([]byte{}, int64(0), int64(0), false)
	f.Fuzz(func(t *testing.T, data []byte, sealed, proven int64, sums bool) {
		const number = 6
		if len(data) > maxArchiveBytes {
			t.Skip("too large")
		}
		dbid := [16]byte([]byte("golden database!"))
		if sums {
			data = bytes.Clone(data)
			repairLog(data, dbid, number)
		}
		disk := diskOf(t, map[string][]byte{"000006.wal": data})
		o := wal.ReplayOptions{DBID: dbid, Number: number, Sealed: sealed, Proven: proven}
		r := readLog(disk, o, wal.Replay)
		checkLogError(t, r.err)
		beside := readLog(disk, o, wal.ReplayDurable)
		checkLogError(t, beside.err)
		if r.err != nil {
			return
		}
		if len(beside.records) > len(r.records) {
			t.Fatalf("beside a writer %d records, alone %d", len(beside.records), len(r.records))
		}
		for i := range beside.records {
			if beside.records[i] != r.records[i] {
				t.Fatalf("record %d is %q beside a writer, %q alone", i, beside.records[i], r.records[i])
			}
		}
		if err := wal.Repair(disk, "db/000006.wal", r.image, r.end); err != nil {
			t.Fatalf("repair: %v", err)
		}
		again := readLog(disk, wal.ReplayOptions{DBID: dbid, Number: number, Sealed: r.end.Offset}, wal.Replay)
		if again.err != nil || fmt.Sprint(again.records) != fmt.Sprint(r.records) || again.end.LastSeq != r.end.LastSeq {
			t.Fatalf("repaired: %d records to %+v, %v, want %d to %+v", len(again.records), again.end, again.err, len(r.records), r.end)
		}
	})
}

// logResult is the result of reading a segment.
type logResult struct {
	records []string
	image   []byte
	end     wal.End
	err     error
}

type replay func(vfs.FS, string, wal.ReplayOptions, func(wal.RecordView) error) (wal.End, error)

func readLog(disk vfs.FS, o wal.ReplayOptions, read replay) (r logResult) {
	const name = "db/000006.wal"
	info, err := wal.Inspect(disk, name, o.DBID, o.Number)
	if err != nil {
		r.err = err
		return r
	}
	r.image = make([]byte, info.Bytes)
	o.Image = r.image
	r.end, r.err = read(disk, name, o, func(v wal.RecordView) error {
		r.records = append(r.records, fmt.Sprintf("%d+%d at %d flags %d: %x", v.FirstSeq, v.Count, v.PayloadOff, v.Flags, v.Payload))
		return nil
	})
	return r
}

func checkLogError(t *testing.T, err error) {
	t.Helper()
	for _, documented := range []error{nil, corrupt.ErrCorrupt, wal.ErrNewerFormat, wal.ErrUnfinished, wal.ErrChanged} {
		if errors.Is(err, documented) {
			return
		}
	}
	t.Fatalf("%v is not a documented error", err)
}
