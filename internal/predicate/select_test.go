package predicate

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// randomBits returns a set of rows less than n.
func randomBits(r *rand.Rand, n int) (set Bits) {
	for row := range n {
		if r.IntN(4) > 0 {
			set.Add(row)
		}
	}
	return set
}

func TestBits(t *testing.T) {
	r := newRand(t)
	for range 500 {
		var set Bits
		want := map[int]bool{}
		for range r.IntN(6) {
			from := r.IntN(MaxRows)
			to := from + r.IntN(MaxRows+1-from)
			set.AddRange(from, to)
			for i := from; i < to; i++ {
				want[i] = true
			}
			if r.IntN(2) == 0 {
				set.Remove(from)
				delete(want, from)
			}
		}
		from, to := min(r.IntN(MaxRows+99), MaxRows), min(r.IntN(MaxRows+99), MaxRows)
		within, n := set.Within(from, to)
		for row := range MaxRows {
			if got, want := within.After(row-1) == row, want[row] && row >= from && row < to; got != want {
				t.Fatalf("row %d within %d and %d: %v, want %v", row, from, to, got, want)
			}
		}
		if n != within.Len() {
			t.Fatalf("%d rows within %d and %d, want %d", n, from, to, within.Len())
		}
		most := r.IntN(MaxRows + 1)
		rows := set.AppendRows([]int{-1}, from, to, most)
		for row, at := set.After(from-1), 1; row >= 0 && row < to && at <= most; row, at = set.After(row), at+1 {
			if at >= len(rows) || rows[at] != row {
				t.Fatalf("rows from %d to %d, at most %d: %v, want %d at %d", from, to, most, rows, row, at)
			}
		}
		if rows[0] != -1 || len(rows)-1 != min(n, most) {
			t.Fatalf("rows from %d to %d, at most %d: %v, want %d", from, to, most, rows, min(n, most))
		}
		up, down := 0, 0
		for at := set.After(-1); at >= 0; at = set.After(at) {
			if up++; !want[at] {
				t.Fatalf("row %d is in the set", at)
			}
		}
		for at := set.Before(MaxRows); at >= 0; at = set.Before(at) {
			if down++; !want[at] {
				t.Fatalf("row %d is in the set, backward", at)
			}
		}
		if n := len(want); up != n || down != n || set.Len() != n || set.Empty() != (n == 0) {
			t.Fatalf("%d rows forward, %d backward, Len %d, Empty %v, want %d", up, down, set.Len(), set.Empty(), n)
		}
	}
}

// TestKeepWords compares KeepWords with a test of each value, for vectors of all widths
// around constants of all kinds.
func TestKeepWords(t *testing.T) {
	r := newRand(t)
	constants := []edm.Value{
		edm.Int32(0), edm.Int32(-3), edm.Int64(math.MaxInt64), edm.Int64(math.MinInt64), edm.Int64(1 << 53), edm.DateTime(1 << 57),
		edm.Double(0), edm.Double(math.Copysign(0, -1)), edm.Double(1.5), edm.Double(-1.5), edm.Double(math.Inf(1)), edm.Double(math.Inf(-1)),
		edm.Double(math.NaN()), edm.Double(math.MaxFloat64), edm.Double(5e-324),
	}
	types := []edm.Type{edm.TypeInt32, edm.TypeInt64, edm.TypeDateTime, edm.TypeDouble}
	for range 20_000 {
		c := constants[r.IntN(len(constants))]
		test := NewCompare("x", allOps[r.IntN(len(allOps))], c).Term.Test(types[r.IntN(len(types))])
		if test.Kind != Ints && test.Kind != Floats {
			continue
		}
		width := r.IntN(9)
		w := Words{Off: r.IntN(20), Step: width, Mask: uint64(1)<<(8*width) - 1}
		if width > 0 && r.IntN(2) == 0 {
			w.Step += r.IntN(60)
		}
		n := 1 + r.IntN(200)
		w.Data = make([]byte, w.Off+n*w.Step+8)
		for i := range w.Data {
			w.Data[i] = byte(r.Uint32())
		}
		switch r.IntN(4) {
		case 0:
			w.Base = uint64(r.Int64()) << r.IntN(64)
		case 1:
			w.Base = constants[r.IntN(len(constants))].Word()
		case 2:
			w.Base = c.Word() - w.Mask>>r.IntN(64)
		}
		at := r.IntN(n) // a value near the constant
		if width > 0 {
			for i, b := range binary.LittleEndian.AppendUint64(nil, c.Word()-w.Base+uint64(r.IntN(3))-1)[:width] {
				w.Data[w.Off+at*w.Step+i] = b
			}
		}
		before := randomBits(r, n)
		set := before
		test.KeepWords(&w, n, &set)
		for row := range n {
			x := w.Base + binary.LittleEndian.Uint64(w.Data[w.Off+row*w.Step:])&w.Mask
			match := test.Kind == Ints && test.Int(int64(x)) || test.Kind == Floats && test.Float(math.Float64frombits(x))
			if got, want := set[row/64]>>(row%64)&1 != 0, match && before[row/64]>>(row%64)&1 != 0; got != want {
				t.Fatalf("%#v: %x (%v): kept %v, want %v; base %x, mask %x", test, x, math.Float64frombits(x), got, want, w.Base, w.Mask)
			}
		}
		if set.Len() > before.Len() || set.After(n-1) >= 0 {
			t.Fatal("rows were added")
		}
	}
}

func TestKeepBooleans(t *testing.T) {
	r := newRand(t)
	for range 500 {
		n := 1 + r.IntN(200)
		data := make([]byte, (n+7)/8)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		test := NewCompare("x", allOps[r.IntN(len(allOps))], edm.Boolean(r.IntN(2) == 0)).Term.Test(edm.TypeBoolean)
		if test.Kind != Ints {
			continue
		}
		before := randomBits(r, n)
		set := before
		test.KeepBooleans(data, n, &set)
		for row := range n {
			match := test.Int(int64(data[row/8] >> (row % 8) & 1))
			if got, want := set[row/64]>>(row%64)&1 != 0, match && before[row/64]>>(row%64)&1 != 0; got != want {
				t.Fatalf("%#v: row %d: kept %v, want %v", test, row, got, want)
			}
		}
	}
}

// TestKeepCodes compares KeepCodes with a look at each code.
func TestKeepCodes(t *testing.T) {
	r := newRand(t)
	for range 500 {
		n, codes := 1+r.IntN(200), 1+r.IntN([]int{30, 200}[r.IntN(2)])
		w := Words{Data: make([]byte, n+8), Mask: 0xff, Step: 1, Base: uint64(r.IntN(2))}
		for i := range n {
			w.Data[i] = byte(r.IntN(codes))
		}
		var match Bits
		for range r.IntN(4) {
			match.Add(r.IntN(codes + 1))
		}
		before := randomBits(r, n)
		set := before
		w.KeepCodes(&match, n, &set)
		for row := range n {
			want := before.After(row-1) == row && match.After(int(w.Data[row])+int(w.Base)-1) == int(w.Data[row])+int(w.Base)
			if got := set.After(row-1) == row; got != want {
				t.Fatalf("row %d of code %d and %v: kept %v, want %v", row, w.Data[row], match, got, want)
			}
		}
	}
}

// entityRows compares the rows of a set with a term one by one.
type entityRows []edm.Entity

func (rows entityRows) Keep(t *Term, set *Bits) {
	for row := set.After(-1); row >= 0; row = set.After(row) {
		if v, _ := rows[row].Properties.Lookup(t.Name); !t.Test(v.Type()).Value(v) {
			set.Remove(row)
		}
	}
}

// TestSelect compares Select with a Match of each row.
func TestSelect(t *testing.T) {
	r := newRand(t)
	names := []string{"a", "b", "c", "d"}
	for range 500 {
		p := Compile(randomNode(r, r.IntN(5), names))
		rows := make(entityRows, 1+r.IntN(200))
		for i := range rows {
			rows[i] = randomEntity(r, names)
		}
		before := randomBits(r, len(rows))
		set := before
		p.Select(rows, &set)
		for i := range rows {
			want := before.After(i-1) == i && p.Match(rows[i].View())
			if got := set.After(i-1) == i; got != want {
				t.Fatalf("%v on row %d, %v: selected %v, want %v", p.Root(), i, rows[i].Properties, got, want)
			}
		}
	}
}

// TestAddTexts compares AddTexts with a comparison of each text, for texts that differ from
// the constant at all places, and in bytes that code units order otherwise.
func TestAddTexts(t *testing.T) {
	r := newRand(t)
	letters := []string{"", "a", "b", "\x00", "z", "é", "\uE000", "\U0001F600", "\uFFFD"}
	text := func() (s string) {
		for range r.IntN(12) {
			s += letters[r.IntN(len(letters))]
		}
		return s
	}
	for range 3000 {
		c := text()
		v, typ := edm.String(c), edm.TypeString
		if r.IntN(3) == 0 {
			v, typ = edm.Binary([]byte(c)), edm.TypeBinary
		}
		test := NewCompare("x", allOps[r.IntN(len(allOps))], v).Term.Test(typ)
		constants := []string{c}
		if typ == edm.TypeString && r.IntN(3) == 0 {
			for range 1 + r.IntN(20) {
				constants = append(constants, text())
			}
			test = choiceTest(constants, r.IntN(2) == 0)
		}
		var data []byte
		var list []Text
		for row := range 1 + r.IntN(20) {
			s, c := text(), constants[r.IntN(len(constants))]
			switch r.IntN(4) {
			case 0:
				s = c[:r.IntN(len(c)+1)] + s
			case 1:
				s = c
			}
			list = append(list, Text{2 * row, len(data), len(data) + len(s)})
			data = append(data, s...)
		}
		var set Bits
		test.AddTexts(data, list, &set)
		n := 0
		for _, x := range list {
			want := test.Bytes(data[x.From:x.To])
			if test.op == choice {
				want = slices.Contains(constants, string(data[x.From:x.To])) != test.outside
			}
			if got := set.After(x.Row-1) == x.Row; got != want {
				t.Fatalf("%q %v %q: %v, want %v", data[x.From:x.To], test.op, constants, got, want)
			}
			if want {
				n++
			}
		}
		if set.Len() != n {
			t.Fatalf("%d rows were added, want %d", set.Len(), n)
		}
	}
}

// choiceTest returns the Test that Compile makes of equalities with constants, or with outside of
// inequalities.
func choiceTest(constants []string, outside bool) *Test {
	op, join := Eq, NewOr
	if outside {
		op, join = Ne, NewAnd
	}
	var nodes []*Node
	for _, c := range constants {
		nodes = append(nodes, NewCompare("x", op, edm.String(c)))
	}
	return Compile(join(nodes...)).joined.Term.Test(edm.TypeString)
}

// TestKeepPrefixes compares KeepPrefixes with Test.Bytes for texts whose first bytes repeat, some
// with zeros at the end.
func TestKeepPrefixes(t *testing.T) {
	r := newRand(t)
	parts := []string{"", "a", "b", "\x00", "ab", "user/", "\u00e9", "\uff5e", "\U0001F600", strings.Repeat("x", 30)}
	text := func(n int) (s []byte) {
		for range r.IntN(n) {
			s = append(s, parts[r.IntN(len(parts))]...)
		}
		return s
	}
	decided, decidedChoice := 0, 0
	for range 20000 {
		n := 1 + r.IntN(70)
		first := text(3)
		texts := make([][]byte, n)
		common := 0
		padded := make([][MaxPrefix]byte, n)
		for i := range texts {
			texts[i] = append(bytes.Clone(first), text(4)...)
			copy(padded[i][:], texts[i])
		}
		for ; common < MaxPrefix-8; common++ {
			if slices.ContainsFunc(padded, func(p [MaxPrefix]byte) bool { return p[common] != padded[0][common] }) {
				break
			}
		}
		x := Prefixes{Common: padded[0][:common], Words: Words{Mask: ^uint64(0), Step: 8}}
		for i := range padded {
			x.Words.Data = binary.LittleEndian.AppendUint64(x.Words.Data, binary.BigEndian.Uint64(padded[i][common:]))
		}
		c := append(bytes.Clone(first), text(4)...)
		op := []Op{Eq, Ne, Lt, Le, Gt, Ge}[r.IntN(6)]
		value := edm.StringBytes(c)
		if r.IntN(2) == 0 {
			value = edm.Binary(c)
		}
		test := Compile(NewCompare("p", op, value)).Root().Term.Test(value.Type())
		constants := []string{string(c)}
		if r.IntN(4) == 0 {
			for range 1 + r.IntN(1+r.IntN(maxPrefixes)) {
				constants = append(constants, string(first)+string(text(4)))
			}
			op, test = choice, choiceTest(constants, r.IntN(2) == 0)
		}
		var set, want Bits
		for i := range texts {
			if r.IntN(8) > 0 {
				set.Add(i)
				if test.Bytes(texts[i]) {
					want.Add(i)
				}
			}
		}
		before := set
		switch ok := test.KeepPrefixes(&x, n, &set); {
		case !ok && set != before:
			t.Fatalf("%v %q: the rows change although the prefixes do not decide", op, constants)
		case ok && set != want:
			t.Fatalf("%v %q of %q: rows %v, want %v", op, constants, texts, set, want)
		case ok && op == choice:
			decidedChoice++
		case ok:
			decided++
		}
	}
	if decided < 5000 || decidedChoice < 100 {
		t.Errorf("the prefixes decide %d times, and %d times for several constants", decided, decidedChoice)
	}
}
