package manifest_test

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

func TestApply(t *testing.T) {
	type log = manifest.Log
	before := manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 3, Sealed: 30}, {Number: 6, Proven: 60}}}
	for _, c := range []struct {
		name string
		edit manifest.Edit
		want manifest.Manifest
	}{
		{"an empty edit changes nothing", manifest.Edit{}, before},
		{
			"a smaller high-water mark replaces",
			manifest.Edit{HighWater: 40},
			manifest.Manifest{LastSeq: 5, HighWater: 40, Logs: before.Logs},
		},
		{"a smaller least high-water mark changes nothing", manifest.Edit{MinHighWater: 40}, before},
		{
			"a greater least high-water mark raises",
			manifest.Edit{MinHighWater: 70},
			manifest.Manifest{LastSeq: 5, HighWater: 70, Logs: before.Logs},
		},
		{
			"logs replace logs",
			manifest.Edit{Logs: []log{{Number: 9}}},
			manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 9}}},
		},
		{
			"a flush drops older logs",
			manifest.Edit{LastSeq: 8, FirstLog: 6},
			manifest.Manifest{LastSeq: 8, HighWater: 50, Logs: []log{{Number: 6, Proven: 60}}},
		},
		{
			"the first log is listed before newer ones",
			manifest.Edit{FirstLog: 5},
			manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 5}, {Number: 6, Proven: 60}}},
		},
		{
			"the first log is listed alone",
			manifest.Edit{FirstLog: 7},
			manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 7}}},
		},
		{
			"ends of open logs are recorded",
			manifest.Edit{Proven: []log{{Number: 2, Proven: 20}, {Number: 3, Proven: 31}, {Number: 6, Proven: 61}, {Number: 7, Proven: 10}}},
			manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 3, Sealed: 30}, {Number: 6, Proven: 61}, {Number: 7, Proven: 10}}},
		},
		{
			"the end of the first log is recorded",
			manifest.Edit{FirstLog: 6, Proven: []log{{Number: 6, Proven: 61}}},
			manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 6, Proven: 61}}},
		},
		{"logs of which nothing is durable change nothing", manifest.Edit{Proven: []log{{Number: 6}, {Number: 7}}}, before},
		{
			"a log that the same edit drops is not listed again",
			manifest.Edit{FirstLog: 6, Proven: []log{{Number: 3, Proven: 30}}},
			manifest.Manifest{LastSeq: 5, HighWater: 50, Logs: []log{{Number: 6, Proven: 60}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := before.Clone()
			m.Apply(c.edit)
			if !reflect.DeepEqual(*m, c.want) {
				t.Errorf("%+v, want %+v", *m, c.want)
			}
		})
	}
	empty := manifest.Manifest{}
	empty.Apply(manifest.Edit{})
	if len(empty.Logs) != 0 {
		t.Errorf("a manifest without logs lists %v", empty.Logs)
	}
	// An older log than the first one of the edit would be taken for a flushed one.
	empty.Apply(manifest.Edit{Proven: []manifest.Log{{Number: 3}, {Number: 4, Proven: 10}}})
	if want := []manifest.Log{{Number: 3}, {Number: 4, Proven: 10}}; !slices.Equal(empty.Logs, want) {
		t.Errorf("a manifest without logs lists %v, want %v", empty.Logs, want)
	}
}

// TestRequireZstd sets the feature twice, beside an extension.
func TestRequireZstd(t *testing.T) {
	area := feature.AppendRecord(nil, feature.Record{Type: 9, Data: []byte("data")})
	m := &manifest.Manifest{NextFile: 1, Extensions: area}
	m.RequireZstd()
	m.RequireZstd()
	fsys := vfs.NewMem()
	err := manifest.Write(fsys, ".", m)
	if err == nil {
		m, err = manifest.Read(fsys, ".")
	}
	if err != nil || m.Required != 1 || string(m.Extensions) != string(feature.AppendName(area, 0, "zstd")) {
		t.Errorf("features %b, extensions %q, error %v", m.Required, m.Extensions, err)
	}
}

// TestReservedSeq reserves sequence numbers beside an extension, until the files have them.
func TestReservedSeq(t *testing.T) {
	area := feature.AppendRecord(nil, feature.Record{Type: 9, Data: []byte("data")})
	m := &manifest.Manifest{NextFile: 1, LastSeq: 5, Extensions: area}
	for _, c := range []struct {
		edit manifest.Edit
		want uint64
	}{
		{manifest.Edit{MinReservedSeq: 5}, 0},
		{manifest.Edit{MinReservedSeq: 8}, 8},
		{manifest.Edit{MinReservedSeq: 7}, 8},
		{manifest.Edit{LastSeq: 7}, 8},
		{manifest.Edit{MinReservedSeq: 1 << 40}, 1 << 40},
		{manifest.Edit{LastSeq: 1 << 40}, 0},
	} {
		m.Apply(c.edit)
		fsys := vfs.NewMem()
		err := manifest.Write(fsys, ".", m)
		if err == nil {
			m, err = manifest.Read(fsys, ".")
		}
		want := area
		if c.want != 0 {
			want = binary.LittleEndian.AppendUint64(append(slices.Clip(area), 2, 0, 0, 0, 8, 0, 0, 0), c.want)
		}
		if err != nil || m.ReservedSeq() != c.want || string(m.Extensions) != string(want) {
			t.Fatalf("after %+v: reserved %d, want %d; extensions %q, want %q; %v", c.edit, m.ReservedSeq(), c.want, m.Extensions, want, err)
		}
	}
	m.Apply(manifest.Edit{MinReservedSeq: 1 << 56})
	if err := manifest.Write(vfs.NewMem(), ".", m); err == nil {
		t.Error("Write of a reserved sequence that is too great succeeded")
	}
}
