package backup

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

var testID = [16]byte{0xba, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// golden compares b with a golden file.
func golden(t *testing.T, name string, b []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("%s:\n got %x\nwant %x", name, b, want)
	}
}

func TestMarkerFormat(t *testing.T) {
	b := appendMarker(nil, testID)
	golden(t, "testdata/marker-v1", b)
	if id, err := decodeMarker(b); err != nil || id != testID {
		t.Errorf("decodeMarker = %x, %v", id, err)
	}
	for i := range b {
		for bit := range 8 {
			damaged := bytes.Clone(b)
			damaged[i] ^= 1 << bit
			if _, err := decodeMarker(damaged); !errors.Is(err, corrupt.ErrCorrupt) {
				t.Errorf("bit %d of byte %d flipped: %v, want damage", bit, i, err)
			}
		}
	}
	if _, err := decodeMarker(b[:len(b)-1]); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("truncated: %v, want damage", err)
	}
	later := bytes.Clone(b[:32])
	later[8] = 2
	if _, err := decodeMarker(appendSum(later, 0)); !errors.Is(err, feature.ErrNewerFormat) {
		t.Errorf("version 2: %v, want a newer format", err)
	}
}

func TestNames(t *testing.T) {
	if got, want := fileName("acc", testID, filename.SSTable, 7, 0xabc), "acc/files/ba0102030405060708090a0b0c0d0e0f-000007-0000000000000abc.sst"; got != want {
		t.Errorf("name of a file is %s, want %s", got, want)
	}
	at := time.Date(2026, 11, 22, 15, 30, 1, 123456700, time.UTC)
	if got, want := backupName("acc", backupID(at)), "acc/backups/20261122T153001.1234567Z"; got != want {
		t.Errorf("name of a backup is %s, want %s", got, want)
	}
	if got, err := parseBackupID(backupID(at)); err != nil || !got.Equal(at) {
		t.Errorf("parseBackupID = %v, %v", got, err)
	}
	for _, id := range []string{"", "20261122T153001Z", "20261122T153001.1234567", "20261322T153001.1234567Z", "20261122T153001.12345678Z"} {
		if _, err := parseBackupID(id); err == nil {
			t.Errorf("parseBackupID(%q) returned no error", id)
		}
	}
}
