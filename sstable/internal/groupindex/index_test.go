package groupindex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

const begin = 48 // where the groups of the tests begin

// userKeys returns n user keys in order, with prefixes of several lengths in common.
func userKeys(r *rand.Rand, n int) [][]byte {
	keys := make([][]byte, 0, n)
	for i := range n {
		partition := fmt.Sprintf("p%03d", r.IntN(3))
		row := strings.Repeat("common-", r.IntN(4)) + fmt.Sprint(i)
		keys = append(keys, codec.AppendKey(nil, 1, partition, row))
	}
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// groupsOf returns groups that begin with every third key. A separator is as long as it must be to
// be greater than the key before, or one in five the whole key. With continues a group in five has
// that of the one before.
func groupsOf(r *rand.Rand, keys [][]byte, continues bool) (groups []Group, end uint64) {
	at := int64(begin)
	for i := 0; i < len(keys); i += 3 {
		g := Group{Off: at, Before: r.IntN(50), Head: 20 + r.IntN(50), Rows: 1 + r.IntN(100), Separator: keys[i]}
		if i > 0 {
			g.Separator = keys[i][:codec.CommonLen(keys[i-1], keys[i])+1]
			if r.IntN(5) == 0 {
				g.Separator = keys[i]
			}
		}
		g.Len = g.Before + g.Head + r.IntN(50)
		if n := len(groups); continues && n > 0 && r.IntN(5) == 0 {
			g.Continues, g.Separator = true, groups[n-1].Separator
		}
		groups = append(groups, g)
		at += int64(g.Len)
	}
	return groups, uint64(at)
}

func encode(groups []Group, keys [][]byte) []byte {
	internal := func(key []byte) []byte { return codec.AppendTrailer(slices.Clone(key), 1, codec.KindPut) }
	return Append(nil, groups, internal(keys[0]), internal(keys[len(keys)-1]))
}

// TestSeek compares Seek with a search from the first group, and what was encoded with what was
// decoded.
func TestSeek(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		keys := userKeys(r, 2+r.IntN(200))
		groups, end := groupsOf(r, keys, seed%2 == 1)
		x, err := Decode(encode(groups, keys), begin, end)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rows := uint64(0)
		for i, want := range groups {
			if got := x.Groups[i]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: group %d is %v, want %v", seed, i, got, want)
			}
			rows += uint64(want.Rows)
		}
		if x.Rows() != rows || !bytes.Equal(codec.UserKey(x.Smallest), keys[0]) || !bytes.Equal(codec.UserKey(x.Largest), keys[len(keys)-1]) {
			t.Fatalf("seed %d: %d rows from %x to %x", seed, x.Rows(), x.Smallest, x.Largest)
		}
		for _, key := range slices.Concat(keys, userKeys(r, 100), [][]byte{{}, {0xFF}}) {
			want := 0 // the last group whose separator is not greater, but the first that a key continues in
			for i, g := range groups {
				if bytes.Compare(g.Separator, key) <= 0 && (!g.Continues || !bytes.Equal(g.Separator, key)) {
					want = i
				}
			}
			if got := x.Seek(key); got != want {
				t.Fatalf("seed %d: key %x is sought in group %d, want %d", seed, key, got, want)
			}
		}
	}
}

// TestDecodeRefuses cuts an index at every byte and changes each of its groups.
func TestDecodeRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	keys := userKeys(r, 40)
	groups, end := groupsOf(r, keys, false)
	p := encode(groups, keys)
	if _, err := Decode(p, begin, end); err != nil {
		t.Fatal(err)
	}
	for n := range p {
		if _, err := Decode(p[:n:n], begin, end); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(p))
		}
	}
	for _, by := range []uint64{1, ^uint64(0)} {
		if _, err := Decode(p, begin+by, end); err == nil {
			t.Errorf("groups from %d were accepted", begin+by)
		}
		if _, err := Decode(p, begin, end+by); err == nil {
			t.Errorf("groups to %d of %d were accepted", end+by, end)
		}
	}
	if _, err := Decode(append(slices.Clone(p), 0), begin, end); err == nil {
		t.Error("a byte after the index was accepted")
	}
	last := len(groups) - 1
	for _, c := range []struct {
		name     string
		from, to int // the groups to change
		change   func(g *Group)
	}{
		{"offset", 0, last, func(g *Group) { g.Off++ }},
		{"greater length", 0, last, func(g *Group) { g.Len++ }},
		{"smaller length", 0, last, func(g *Group) { g.Len-- }},
		{"no rows", 0, last, func(g *Group) { g.Rows = 0 }},
		{"units beyond the group", 0, last, func(g *Group) { g.Before = g.Len - g.Head + 1 }},
		{"head beyond the group", 0, last, func(g *Group) { g.Head, g.Before = g.Len+1, 0 }},
		{"separator greater than the next", 0, last - 1, func(g *Group) { g.Separator = []byte{0xFF} }},
		{"separator of the group before", 1, last, func(g *Group) {
			g.Separator = groups[slices.IndexFunc(groups, func(o Group) bool { return o.Off == g.Off })-1].Separator
		}},
		{"continues nothing", 0, 0, func(g *Group) { g.Continues = true }},
	} {
		for i := c.from; i <= c.to; i++ {
			changed := slices.Clone(groups)
			c.change(&changed[i])
			if _, err := Decode(encode(changed, keys), begin, end); err == nil {
				t.Errorf("%s of group %d was accepted", c.name, i)
			}
		}
	}
	good := encodedKey(1)
	user := codec.UserKey(good)
	for _, bad := range [][]byte{
		nil, good[:codec.TrailerLen-1], codec.AppendTrailer(user[:len(user)-1:len(user)-1], 1, codec.KindPut), codec.AppendTrailer(user, 1, 0xFF),
	} {
		if _, err := Decode(Append(nil, groups, bad, good), begin, end); err == nil {
			t.Errorf("the smallest key %x was accepted", bad)
		}
		if _, err := Decode(Append(nil, groups, good, bad), begin, end); err == nil {
			t.Errorf("the largest key %x was accepted", bad)
		}
	}
	for i := range groups {
		flags := slices.Clone(p)
		flags[4+i*GroupBytes+20] |= 2
		if _, err := Decode(flags, begin, end); err == nil {
			t.Errorf("an unknown flag of group %d was accepted", i)
		}
	}
}

// TestLimits decodes an index of one group with sizes at a limit and beyond it.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name                  string
		head, rows, separator int
		ok                    bool
	}{
		{"shortest head and separator, one row", rowgroup.SumBytes, 1, 0, true},
		{"head without a sum", rowgroup.SumBytes - 1, 1, 0, false},
		{"longest head", rowgroup.MaxHeadBytes, 1, 0, true},
		{"longer head", rowgroup.MaxHeadBytes + 1, 1, 0, false},
		{"most rows", 20, rowgroup.MaxRows, 0, true},
		{"more rows", 20, rowgroup.MaxRows + 1, 0, false},
		{"longest separator", 20, 1, codec.MaxKeyLen, true},
		{"longer separator", 20, 1, codec.MaxKeyLen + 1, false},
	} {
		g := Group{Off: begin, Head: c.head, Len: c.head, Rows: c.rows, Separator: bytes.Repeat([]byte("s"), c.separator)}
		if _, err := Decode(Append(nil, []Group{g}, encodedKey(1), encodedKey(2)), begin, begin+uint64(g.Len)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestEstimates estimates the rows and the bytes of ranges of a file with three groups.
func TestEstimates(t *testing.T) {
	user := func(row int) []byte { return codec.UserKey(encodedKey(row)) }
	x, err := Decode(Append(nil, []Group{
		{Off: begin, Head: 100, Len: 100, Rows: 10},
		{Off: begin + 100, Head: 200, Len: 200, Rows: 20, Separator: user(3)},
		{Off: begin + 300, Head: 301, Len: 301, Rows: 31, Separator: user(6)},
	}, encodedKey(1), encodedKey(8)), begin, begin+601)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lo, hi int
		rows   uint64
		bytes  int64
	}{{1, 8, 61, 601}, {1, 2, 5, 50}, {2, 8, 56, 551}, {1, 4, 20, 200}, {2, 7, 41, 401}, {4, 5, 1, 1}, {7, 8, 16, 151}} {
		if rows, n := x.Within(user(c.lo), user(c.hi)); rows != c.rows || n != c.bytes {
			t.Errorf("from row %d to row %d: %d rows of %d bytes, want %d of %d", c.lo, c.hi, rows, n, c.rows, c.bytes)
		}
	}
	for row, want := range []int64{0, 0, 50, 200, 200, 200, 450, 450, 601, 601} {
		if got := x.Before(user(row)); got != want {
			t.Errorf("before row %d: %d bytes, want %d", row, got, want)
		}
	}
}

// TestEmpty seeks in the index of a file without rows.
func TestEmpty(t *testing.T) {
	p := Append(nil, nil, nil, nil)
	x, err := Decode(p, begin, begin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(append(p, 0), begin, begin); err == nil {
		t.Error("a byte after the index was accepted")
	}
	if g := x.Seek(codec.UserKey(encodedKey(1))); g != 0 || x.Rows() != 0 {
		t.Errorf("%d rows, sought in group %d", x.Rows(), g)
	}
}

func encodedKey(row int) []byte {
	return codec.AppendTrailer(codec.AppendKey(nil, 1, "p", fmt.Sprint(row)), 1, codec.KindPut)
}

// TestAround reads the head and one heap unit of a group whose units lie around the head.
func TestAround(t *testing.T) {
	separator := []byte("key-1")
	g := Group{Before: 30, Head: 100, Len: 175, Rows: 4, Separator: separator}
	var units []byte
	units = append(units, 4)
	for i, stored := range []int{10, 20, 30, 15} {
		var key []byte
		if i > 0 {
			key = fmt.Appendf(nil, "key-%d", 2*i)
		}
		units = AppendUnit(units, stored, key, separator)
	}
	if rest, ok := g.decodeUnits(units); !ok || len(rest) > 0 {
		t.Fatalf("units are refused, or %d bytes are left", len(rest))
	}
	for _, c := range []struct {
		key      string
		from, to int
	}{
		{"a", 0, 130},
		{"ke", 0, 130},
		{"key-1", 0, 130},
		{"key-2", 10, 130},
		{"key-3", 10, 130},
		{"key-4", 30, 160},
		{"key-6", 30, 175},
		{"key-9", 30, 175},
		{"l", 30, 175},
	} {
		if from, to := g.Around(slices.Clip([]byte(c.key))); from != c.from || to != c.to {
			t.Errorf("%s: bytes %d to %d, want %d to %d", c.key, from, to, c.from, c.to)
		}
	}
	for n := range units {
		if _, ok := g.decodeUnits(units[:n]); ok {
			t.Errorf("%d of %d bytes of units were accepted", n, len(units))
		}
	}
	g.Units = nil
	if from, to := g.Around(separator); from != 0 || to != g.Len {
		t.Errorf("without units: bytes %d to %d, want the group", from, to)
	}
}

// TestBadUnits decodes lists of heap units that do not fit their group.
func TestBadUnits(t *testing.T) {
	type unit struct {
		stored, shared int
		suffix         string
	}
	for _, c := range []struct {
		name  string
		units []unit
		ok    bool
	}{
		{"two around the head", []unit{{30, 0, ""}, {45, 4, "2"}}, true},
		{"one, no separator", []unit{{30, 0, ""}}, true},
		{"two before the head", []unit{{rowgroup.SumBytes + 1, 0, ""}, {21, 5, ""}}, true},
		{"longer than the group", []unit{{30, 0, ""}, {46, 4, "2"}}, false},
		{"three, longer than the group", []unit{{30, 0, ""}, {20, 4, "2"}, {26, 4, "3"}}, false},
		{"only a sum", []unit{{rowgroup.SumBytes, 0, ""}}, false},
		{"longer separator than that of the group", []unit{{30, 0, ""}, {45, 6, ""}}, false},
		{"first with a part of the separator", []unit{{30, 1, ""}}, false},
		{"first with a separator", []unit{{30, 0, "a"}}, false},
	} {
		p := []byte{byte(len(c.units))}
		for _, u := range c.units {
			p = binary.LittleEndian.AppendUint32(p, uint32(u.stored))
			p = binary.LittleEndian.AppendUint16(p, uint16(u.shared))
			p = append(binary.LittleEndian.AppendUint16(p, uint16(len(u.suffix))), u.suffix...)
		}
		for _, after := range []string{"", "rest"} {
			g := Group{Before: 30, Head: 100, Len: 175, Separator: []byte("key-1")}
			rest, ok := g.decodeUnits(append(slices.Clip(p), after...))
			if ok != c.ok || ok && (string(rest) != after || len(g.Units) != len(p)-1) {
				t.Errorf("%s: accepted %t, %d bytes of units, rest %q, want %q", c.name, ok, len(g.Units), rest, after)
			}
		}
	}
}
