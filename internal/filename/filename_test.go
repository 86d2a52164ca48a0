package filename_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/wal"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]struct {
		kind   filename.Kind
		number uint64
	}{
		"000001.wal":             {filename.WAL, 1},
		"123456.wal":             {filename.WAL, 123456},
		"1234567.wal":            {filename.WAL, 1234567},
		"000001.sst":             {filename.SSTable, 1},
		"000008.reserve":         {filename.Reserve, 8},
		"999999999999999999.wal": {filename.WAL, wal.MaxNumber},

		"1000000000000000000.wal": {}, "99999999999999999999.wal": {},
		"000000.wal": {}, "00001.wal": {}, "0000001.wal": {}, "1.wal": {}, "9.sst": {}, "0000009.sst": {},
		"-00001.wal": {}, "+00001.wal": {}, "00000a.wal": {}, "000001.wal.": {}, "000001.wal ": {}, " 000001.wal": {},
		"000001.WAL": {}, "000001.wal.sst": {}, ".wal": {}, "000001": {}, "000001.tmp": {}, "": {},
		filename.Lock: {}, filename.Manifest: {}, filename.ManifestTemp: {},
	} {
		kind, number := filename.Parse(name)
		if kind != want.kind || number != want.number {
			t.Errorf("Parse(%q) = %q, %d; want %q, %d", name, kind, number, want.kind, want.number)
		}
		if kind != "" && filename.Make(kind, number) != name {
			t.Errorf("Make(%q, %d) = %q, want %q", kind, number, filename.Make(kind, number), name)
		}
	}
}
