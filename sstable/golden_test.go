package sstable

import (
	"bytes"
	"encoding/binary"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of the current version")

// TestGolden reads a file of each version. It also writes the one without compression
// again and compares all bytes; the output of s2 for the same input differs between
// processors, and that of Zstandard may between versions of the library.
func TestGolden(t *testing.T) {
	few, o := smallEntries()
	many, wide := uniform(600), writerOptions() // groups of several heap units
	for _, c := range []struct {
		name        string
		version     uint32
		compression Compression
		exact       bool
		entries     []entry
		options     WriterOptions
	}{
		{"testdata/v1-none.sst", 1, CompressionNone, false, few, o},
		{"testdata/v1-fast.sst", 1, CompressionFast, false, few, o},
		{"testdata/v2-none.sst", 2, CompressionNone, true, few, o},
		{"testdata/v2-fast.sst", 2, CompressionFast, false, few, o},
		{"testdata/v2-small.sst", 2, CompressionSmall, false, few, o},
		{"testdata/v2-units.sst", 2, CompressionNone, true, many, wide},
	} {
		c.options.Compression = c.compression
		f, info := write(t, c.options, c.entries)
		data := bytesOf(t, f, info.Size)
		if *update && c.version == version {
			if err := os.WriteFile(c.name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if v := binary.LittleEndian.Uint32(golden[8:]); v != c.version {
			t.Errorf("%s has version %d, want %d", c.name, v, c.version)
		}
		if err := readAll(t, fileOf(t, golden), c.entries, c.name); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.exact && !bytes.Equal(golden, data) {
			t.Errorf("%s: the same entries are written as other bytes: the format has changed and needs another version", c.name)
		}
	}
}
