package backup

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
)

const testManifest = "testdata/manifest-v1"

var testTime = time.Date(2026, 11, 22, 15, 30, 1, 123456700, time.UTC)

func sampleManifest() *manifest {
	id := "ba0102030405060708090a0b0c0d0e0f"
	db := [16]byte{0xdb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	return &manifest{
		Directory: id, Account: "account", Database: "db0102030405060708090a0b0c0d0e0f", Epoch: 1, Time: testTime,
		LastSequence: 1000, LastTimestamp: testTime.Add(-time.Second), Tables: []string{"Orders", "People"},
		Files: []file{
			{"000007.sst", fileName("account", db, filename.SSTable, 7, 0xabc), 4125, "0000000000000abc"},
			{"000009.wal", fileName("account", db, filename.WAL, 9, 0xdef), 8192, "0000000000000def"},
			{"MANIFEST", listName("account", db, 0x123), 228, "0000000000000123"},
		},
	}
}

func TestManifestFormat(t *testing.T) {
	name := backupName("account", backupID(testTime))
	b, err := encodeManifest(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, testManifest, b)
	if m, err := decodeManifest(name, b); err != nil || m.LastSequence != 1000 || len(m.Files) != 3 {
		t.Errorf("decodeManifest = %+v, %v", m, err)
	}
	for i := range b {
		for bit := range 8 {
			damaged := bytes.Clone(b)
			damaged[i] ^= 1 << bit
			if _, err := decodeManifest(name, damaged); !errors.Is(err, corrupt.ErrCorrupt) {
				t.Fatalf("bit %d of byte %d flipped: %v, want damage", bit, i, err)
			}
		}
		if _, err := decodeManifest(name, b[:i]); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Fatalf("truncated to %d bytes: %v, want damage", i, err)
		}
	}
	if _, err := decodeManifest(backupName("other", backupID(testTime)), b); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("manifest under another name: %v, want damage", err)
	}
	if _, err := decodeManifest(name, sign(2, b[bytes.IndexByte(b, '\n')+1:])); !errors.Is(err, feature.ErrNewerFormat) {
		t.Errorf("version 2: %v, want a newer format", err)
	}
}

// sign returns a manifest with a right sum.
func sign(version uint64, body []byte) []byte {
	return append(appendHead(nil, version, body), body...)
}

// TestManifestRefuses checks that what a manifest lists cannot leave its directory.
func TestManifestRefuses(t *testing.T) {
	for what, change := range map[string]func(m *manifest){
		"name of a file in a parent":   func(m *manifest) { m.Files[0].Name = "../000007.sst" },
		"name of another file":         func(m *manifest) { m.Files[0].Name = "LOCK" },
		"object of another account":    func(m *manifest) { m.Files[0].Object = strings.Replace(m.Files[0].Object, "account", "other", 1) },
		"object in a parent":           func(m *manifest) { m.Files[0].Object = "account/files/../../etc" },
		"file twice":                   func(m *manifest) { m.Files[1].Name = m.Files[0].Name },
		"negative size":                func(m *manifest) { m.Files[0].Bytes = -1 },
		"hash that is no hash":         func(m *manifest) { m.Files[0].Hash = "xyz" },
		"no MANIFEST":                  func(m *manifest) { m.Files = m.Files[:2] },
		"id of a directory that is no": func(m *manifest) { m.Directory = "ba" },
	} {
		m := sampleManifest()
		change(m)
		b, err := encodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(backupName("account", backupID(testTime)), b); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: %v, want damage", what, err)
		}
	}
}

// FuzzManifest checks that what decodes encodes to the same bytes.
func FuzzManifest(f *testing.F) {
	b, err := os.ReadFile(testManifest)
	if err != nil {
		f.Fatal(err)
	}
	body := b[bytes.IndexByte(b, '\n')+1:]
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		b := sign(manifestVersion, body)
		m, err := decodeManifest(backupName("account", backupID(testTime)), b)
		if err != nil {
			return
		}
		if again, err := encodeManifest(m); err != nil || !bytes.Equal(again, b) {
			t.Errorf("encodes to %q, %v, want %q", again, err, b)
		}
	})
}
