package feature_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/feature"
)

func TestCheck(t *testing.T) {
	record := func(typ uint16, required bool, data string) []byte {
		return feature.AppendRecord(nil, feature.Record{Type: typ, Required: required, Data: []byte(data)})
	}
	named := feature.AppendName(feature.AppendName(record(9, false, "x"), 3, "columns"), 40, "range-tombstones")
	for _, c := range []struct {
		name            string
		area            []byte
		required, known uint64
		want            string // part of the error
		unknown         bool
	}{
		{name: "empty"},
		{name: "optional record", area: record(9, false, "data")},
		{name: "required record", area: record(9, true, ""), want: "extension record of type 9", unknown: true},
		{name: "known feature", area: named, required: 1 << 3, known: 1 << 3},
		{name: "unknown feature with a name", area: named, required: 1 << 40, known: 1 << 3, want: `"range-tombstones"`, unknown: true},
		{name: "first of two unknown features", area: named, required: 1<<40 | 1<<3, want: `"columns"`, unknown: true},
		{name: "unknown feature without a name", area: named, required: 1 << 63, want: "bit 63", unknown: true},
		{name: "names of features that are not set", area: named},
		{name: "half a header", area: make([]byte, 7), want: "record of 7 bytes"},
		{name: "type 0", area: record(0, false, ""), want: "record of type 0"},
		{name: "unknown flags", area: []byte{9, 0, 2, 0, 0, 0, 0, 0}, want: "flags 0x2"},
		{name: "length", area: record(9, false, "data")[:11], want: "record of 4 bytes, left 3"},
		{name: "huge length", area: []byte{9, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, want: "left 0"},
		{name: "bit of a name", area: feature.AppendName(nil, 64, "x"), want: "name of a feature"},
		{name: "empty name", area: feature.AppendName(nil, 1, ""), want: "name of a feature"},
		{name: "long name", area: feature.AppendName(nil, 1, strings.Repeat("x", 65)), want: "name of a feature"},
		{name: "name of control characters", area: feature.AppendName(nil, 1, "a\x1bb"), want: "name \"a\\x1bb\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := feature.Check(c.area, c.required, c.known)
			if (err != nil) != (c.want != "") || errors.Is(err, feature.ErrUnknown) != c.unknown {
				t.Fatalf("got %v, want %q, unknown %t", err, c.want, c.unknown)
			}
			if err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	want := []string{"columns", "range-tombstones", "bit 63"}
	if got := feature.Names(named, 1<<3|1<<40|1<<63); !slices.Equal(got, want) {
		t.Errorf("names are %q, want %q", got, want)
	}
}

// FuzzCheck checks arbitrary areas. An accepted area is the encoding of its records.
func FuzzCheck(f *testing.F) {
	f.Add(feature.AppendName(nil, 3, "columns"), uint64(1<<3))
	f.Add(feature.AppendRecord(nil, feature.Record{Type: 9, Data: []byte("x")}), uint64(0))
	f.Add([]byte{9, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, uint64(1))
	f.Fuzz(func(t *testing.T, area []byte, required uint64) {
		if feature.Check(area, required, ^uint64(0)) != nil {
			return
		}
		var again []byte
		for r := range feature.Records(area) {
			again = feature.AppendRecord(again, r)
		}
		if !reflect.DeepEqual(append([]byte{}, again...), append([]byte{}, area...)) {
			t.Fatalf("%x has the records %x", area, again)
		}
		feature.Names(area, required)
	})
}
