package groupbounds

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/valuebounds"
)

// TestDecodeBadGroups decodes the bounds of two columns and of groups with a list of
// columns.
func TestDecodeBadGroups(t *testing.T) {
	section := func(groups ...[]uint16) []byte {
		p := binary.LittleEndian.AppendUint32(nil, 2)
		for _, name := range []string{"A", "B"} {
			p = append(append(p, byte(edm.TypeInt32), 1, 0), name...)
		}
		for _, ids := range groups {
			p = binary.LittleEndian.AppendUint16(p, uint16(len(ids)))
			p = append(p, make([]byte, groupBytes-2)...)
			for _, id := range ids {
				p = append(binary.LittleEndian.AppendUint16(p, id), 0)
			}
		}
		return p
	}
	for _, c := range []struct {
		groups [][]uint16
		ok     bool
	}{
		{[][]uint16{{}, {1}, {1, 0}, {0, 1}}, true},
		{[][]uint16{{0, 1}, {1, 1}}, false},
		{[][]uint16{{2}}, false},
		{[][]uint16{{0, 1, 0}}, false},
	} {
		if _, err := Decode(section(c.groups...), len(c.groups)); (err == nil) != c.ok {
			t.Errorf("groups with the columns %v: error %v", c.groups, err)
		}
	}
	good := section([]uint16{1}, []uint16{0, 1})
	for n := range good {
		if _, err := Decode(good[:n:n], 2); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(good))
		}
	}
	if _, err := Decode(append(good, 0), 2); err == nil {
		t.Error("a byte after the bounds is accepted")
	}
	// Groups that claim the most columns, without their records.
	group := append([]byte{0xFF, 0xFF}, make([]byte, groupBytes-2)...)
	const many = 40_000
	if _, err := Decode(append(section(), bytes.Repeat(group, many)...), many); err == nil {
		t.Error("groups with more columns than the file are accepted")
	}
}

// TestLimit appends a group with each limit. The columns in the fewest rows lose their bounds
// first, and what remains is as without a limit.
func TestLimit(t *testing.T) {
	const rows = 40
	columns, in := make([]Column, 8), []int{3, rows, 7, 3, 3, 20, rows, 8}
	rarest := []int{4, 3, 0, 2, 7, 5, 6, 1}
	var b Builder
	appendGroup := func(limit int) []byte {
		b.Reset()
		for i, n := range in {
			columns[i] = Column{fmt.Sprint(i), edm.TypeDouble}
			var v valuebounds.Bounds
			v.AddWords(edm.TypeDouble, []uint64{math.Float64bits(float64(i)), math.Float64bits(float64(2 * i)), math.Float64bits(math.NaN())}, nil)
			b.Add(i, edm.TypeDouble, n, &v)
		}
		return b.AppendTo(AppendColumns(nil, columns), columns, rows, 1, 2, limit)
	}
	load := func(p []byte) *Group {
		s, err := Decode(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		g := s.NewGroup()
		g.Load(0)
		return g
	}
	const presence, bounds = groupBytes + 8*minRecordBytes, 16
	list := len(AppendColumns(nil, make([]Column, 8))) + 8 // with the names
	whole := load(appendGroup(presence + 8*bounds))
	for limit := range presence + 9*bounds {
		p := appendGroup(limit)
		omitted := min(8, max(0, (presence+8*bounds-limit+bounds-1)/bounds))
		if want := list + presence + (8-omitted)*bounds; len(p) != want {
			t.Fatalf("limit %d: %d bytes, want %d", limit, len(p), want)
		}
		g := load(p)
		for k, i := range rarest {
			want := whole.columns[i]
			if want.Min.IsNull() || want.Max.IsNull() || !want.NaN || (want.Present == predicate.All) != (in[i] == rows) {
				t.Fatalf("column %d: %+v", i, want)
			}
			if k < omitted {
				want.Min, want.Max = edm.Value{}, edm.Value{}
			}
			if got := g.columns[i]; !reflect.DeepEqual(got, want) {
				t.Errorf("limit %d, column %d: %+v, want %+v", limit, i, got, want)
			}
		}
	}
}
