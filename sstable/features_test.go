package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
)

// withFeatures returns a file with features and an extension area. change may damage
// the footer.
func withFeatures(t testing.TB, data []byte, required, optional uint64, area []byte, change func(f *footer)) []byte {
	t.Helper()
	r := open(t, fileOf(t, data), nil)
	f := r.footer
	f.required, f.optional = required, optional
	out := bytes.Clone(data[:r.foot])
	f.extensions = span{off: uint64(len(out))}
	if len(area) > 0 {
		out = r.bind.AppendSum(append(out, area...), len(out), r.foot)
		f.extensions.len = uint64(len(out)) - f.extensions.off
	}
	if change != nil {
		change(&f)
	}
	return appendFooter(out, r.bind, testDB, testFile, f, int64(len(out)))
}

// TestFeatures opens files with features and extensions.
func TestFeatures(t *testing.T) {
	entries, data := small(t)
	record := feature.AppendRecord(nil, feature.Record{Type: 9, Data: []byte("data")})
	for _, c := range []struct {
		name               string
		required, optional uint64
		area               []byte
		change             func(f *footer)
		newer, damage      string
	}{
		{name: "optional", optional: ^uint64(0), area: record},
		{name: "required", required: 1 << 63, area: feature.AppendName(record, 63, "columns"), newer: `"columns"`},
		{name: "required without a name", required: 2, newer: "bit 1"},
		{name: "required record", area: feature.AppendRecord(nil, feature.Record{Type: 9, Required: true}), newer: "type 9"},
		{name: "required, and counts of another meaning", required: 2, change: func(f *footer) { f.keys = f.entries + 1 }, newer: "bit 1"},
		{name: "bad record", area: []byte("record"), damage: "record of 6 bytes"},
		{name: "longest area", area: feature.AppendRecord(nil, feature.Record{Type: 9, Data: make([]byte, maxExtensionBytes-16)})},
		{name: "too long an area", area: feature.AppendRecord(nil, feature.Record{Type: 9, Data: make([]byte, maxExtensionBytes-15)}), damage: "invalid length"},
		{name: "huge length", change: func(f *footer) { f.extensions.len = 1 << 63 }, damage: "invalid length"},
		{name: "shorter than a sum", change: func(f *footer) { f.extensions.len = 7 }, damage: "invalid length"},
		{name: "a gap after it", area: record, change: func(f *footer) { f.extensions.off-- }, damage: "not adjacent"},
		{name: "an offset without an area", change: func(f *footer) { f.extensions.off = 0 }, damage: "not adjacent"},
		{name: "wrong sum", area: record, change: func(f *footer) {
			f.extensions.off, f.extensions.len = f.extensions.off+1, f.extensions.len-1
		}, damage: "wrong sum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := withFeatures(t, data, c.required, c.optional, c.area, c.change)
			if c.newer == "" && c.damage == "" {
				if err := readAll(t, fileOf(t, p), entries, c.name); err != nil {
					t.Error(err)
				}
				for bit := 8 * (len(data) - footerBytes); bit < 8*len(p); bit++ {
					p[bit/8] ^= 1 << (bit % 8)
					if err := verifyOnly(t, p); !errors.Is(err, corrupt.ErrCorrupt) || errors.Is(err, ErrNewerFormat) {
						t.Fatalf("bit %d is flipped: %v", bit, err)
					}
					p[bit/8] ^= 1 << (bit % 8)
					if len(p) > 10_000 {
						bit += 8 * 997
					}
				}
				return
			}
			_, err := Open(fileOf(t, p), readerOptions(nil))
			if errors.Is(err, ErrNewerFormat) != (c.newer != "") || errors.Is(err, corrupt.ErrCorrupt) != (c.damage != "") ||
				!strings.Contains(fmt.Sprint(err), c.newer+c.damage) {
				t.Errorf("Open: %v, want %s%s", err, c.newer, c.damage)
			}
		})
	}
}

// TestVersionOfFooter opens a file whose header has an older version than its footer.
func TestVersionOfFooter(t *testing.T) {
	_, data := small(t)
	data[8] = 1
	fixSums(data)
	// The sum of the footer of version 2 is wrong for that of version 1, so set it too.
	b := checksum.Bind(testDB, testFile)
	at := len(data) - footerBytes1
	data = b.AppendSum(data[:len(data)-sumBytes], at, int64(at))
	_, err := Open(fileOf(t, data), readerOptions(nil))
	wantCorrupt(t, err, "footer of another version")
	golden, err := os.ReadFile("testdata/v1-none.sst")
	if err != nil {
		t.Fatal(err)
	}
	golden[8] = 2
	fixSums(golden)
	_, err = Open(fileOf(t, golden), readerOptions(nil))
	wantCorrupt(t, err, "footer of an older version")
	_, err = Open(fileOf(t, append(golden[:headerBytes:headerBytes], make([]byte, footerBytes1)...)), readerOptions(nil))
	wantCorrupt(t, err, "no place for the footer")
}
