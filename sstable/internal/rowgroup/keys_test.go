package rowgroup

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func tombstones(int) edm.Properties { return nil }

// TestTruncatedHead decodes the beginnings of heads, whose sums are taken to be right. One that
// ends within the keys or the vectors is refused.
func TestTruncatedHead(t *testing.T) {
	for name, rows := range map[string][]string{
		"rests of one length": {"0123456789abcdef", "1123456789abcdef"},
		"rests that vary":     {"0", "1123456789abcdef"},
	} {
		h, data := build(t, userKeys([]string{"p", "q"}, rows), tombstones)
		if err := new(Head).Decode(data, h.off, 0, len(data), list()); err != nil {
			t.Fatal(err)
		}
		for n := SumBytes; n < len(data); n++ {
			if new(Head).Decode(bytes.Clone(data[:n]), h.off, 0, n, list()) == nil {
				t.Errorf("%s: a head of %d of %d bytes was accepted", name, n, len(data))
			}
		}
	}
}

// TestCraftedKeys decodes heads whose keys have an invalid layout.
func TestCraftedKeys(t *testing.T) {
	partitions := []string{"partition 1", "partition 2", "partition 3"}
	users := userKeys(partitions, []string{"0123456789abcdef", "1123456789abcdef"})
	h, same := build(t, users, tombstones)
	_, vary := build(t, userKeys(partitions, []string{"0123456789abcdef", "1"}), tombstones)
	if h.prefixGroups() != 3 || h.width != 8 || h.restLen != 8 || le16(vary, 7) != restsVary {
		t.Fatal("the heads have another layout")
	}
	dir := 32 + len(h.common)
	prefixes := dir + 3*prefixGroupBytes
	ends := prefixes + len(h.prefixes) + len(users)*8
	first := func(group int) int { return dir + group*prefixGroupBytes }
	partition := func(group int) int { return first(group) + 2 }
	end := func(group int) int { return first(group) + 4 }
	set := func(p []byte, at, n int) { binary.LittleEndian.PutUint16(p[at:], uint16(n)) }
	add := func(at, n int) func(p []byte) {
		return func(p []byte) { set(p, at, le16(p[at:], 0)+n) }
	}
	for _, c := range []struct {
		name   string
		data   []byte
		change func(p []byte)
	}{
		{"suffixes of 9 bytes", same, func(p []byte) { p[10], p[14] = 9, 7 }},
		{"unknown flag", same, func(p []byte) { p[11] = 2 }},
		{"bytes that are not zero", same, func(p []byte) { p[20] = 1 }},
		{"first row after the first", same, add(first(0), 1)},
		{"two groups from one row", same, add(first(1), -2)},
		{"group of no row", same, add(first(2), 2)},
		{"prefix that ends before it begins", same, func(p []byte) { set(p, end(1), 1); set(p, partition(1), 5) }},
		{"short partition key", same, func(p []byte) { set(p, partition(1), 4) }},
		{"partition key beyond the prefix", same, add(partition(1), 1)},
		{"prefixes beyond the last group", same, func(p []byte) { add(end(2), -1)(p); set(p, partition(2), 5) }},
		{"rest that ends before it begins", vary, add(ends+2, -1)},
	} {
		p := bytes.Clone(c.data)
		c.change(p)
		if slices.Equal(p, c.data) {
			t.Fatalf("%s: nothing is changed", c.name)
		}
		if new(Head).Decode(p, h.off, 0, len(p), list()) == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
}
