package fuzz

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// TestNewerFormats raises the version of one file of a database at a time: Open returns
// ErrNewerFormat and changes nothing.
func TestNewerFormats(t *testing.T) {
	for name := range goldenFiles(t) {
		t.Run(name, func(t *testing.T) {
			files := goldenFiles(t)
			b := files[name]
			newer := little.Uint32(b[8:]) + 1
			little.PutUint32(b[8:], newer)
			if strings.HasSuffix(name, ".sst") {
				little.PutUint32(b[len(b)-24:], newer)
			}
			repair(files)
			for _, readOnly := range []bool{false, true} {
				disk := diskOf(t, files)
				o := options(disk)
				o.ReadOnly = readOnly
				if _, err := engine.Open("db", o); !errors.Is(err, store.ErrNewerFormat) || errors.Is(err, store.ErrCorrupt) {
					t.Errorf("read-only %t: %v, want %v", readOnly, err, store.ErrNewerFormat)
				}
				checkUnchanged(t, "a refused open", files, contents(t, disk, "db"))
			}
		})
	}
}

// TestFailedOpenChangesNothing opens a database whose manifest has no end of the log and
// whose catalog is damaged: the failed Open must not write the end to the manifest.
func TestFailedOpenChangesNothing(t *testing.T) {
	files := goldenFiles(t)
	clear(files["MANIFEST"][0x70:0x78])
	log := bytes.Replace(files["000006.wal"][:0x1208], []byte("\x00\x00\x00\x00account\x01\x01"), []byte("\x00\x00\x00\x00unknown\x01\x01"), 1)
	files["000006.wal"] = log
	repair(files)
	disk := diskOf(t, files)
	if _, err := engine.Open("db", options(disk)); !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("open: %v, want %v", err, store.ErrCorrupt)
	}
	checkUnchanged(t, "a failed open", files, contents(t, disk, "db"))
}

// TestOpenCompletesCreation opens a directory that contains only segments without records,
// even of another database. Open treats it as an interrupted creation and completes it.
func TestOpenCompletesCreation(t *testing.T) {
	header := goldenFiles(t)["000006.wal"][:4096]
	for name, files := range map[string]map[string][]byte{
		"header":      {"000006.wal": header},
		"empty":       {"000001.wal": nil},
		"half":        {"000001.wal": header[:100], "000004.wal": header},
		"temporary":   {"MANIFEST.tmp": []byte("half")},
		"one of each": {"000002.wal": header, "MANIFEST.tmp": nil},
	} {
		t.Run(name, func(t *testing.T) {
			disk := diskOf(t, files)
			for range 2 {
				db, err := engine.Open("db", options(disk))
				if err != nil {
					t.Fatal(err)
				}
				if err := db.CreateTable(t.Context(), "People"); err != nil && !errors.Is(err, store.ErrTableExists) {
					t.Error(err)
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
