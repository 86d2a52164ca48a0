package groupbounds

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
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
