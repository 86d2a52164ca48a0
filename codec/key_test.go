package codec

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
)

const seed = 20261121 // of all random choices in these tests

// afterContinuation ends the upper bound of the keys that begin with a prefix.
const afterContinuation = 0xFF

func TestGoldenKeys(t *testing.T) {
	cases := []struct {
		name, partition, row, want string // want is "" if only the golden file has it
	}{
		{"both empty", "", "", "000000100101"},
		{"a and empty", "a", "", "00000010610101"},
		{"a and b", "a", "b", "0000001061016201"},
		{"ab and empty", "ab", "", "0000001061620101"},
		{"U+D7FF", "", "\uD7FF", "0000001001ED9FBF01"},
		{"U+1F600", "", "\U0001F600", "0000001001EDA0BDEDB88001"},
		{"U+E000", "", "\uE000", "0000001001EE808001"},
		{"U+FFFF", "", "\uFFFF", "0000001001EFBFBF01"},
		{"U+10FFFF among others", "x\U0010FFFFy", "é\U00010000", ""},
		{"usual", "dev-000001", "1700000000000", ""},
	}
	list := make([]golden, 0, len(cases))
	for i, c := range cases {
		got := AppendKey(nil, 16, c.partition, c.row)
		if c.want != "" && strings.ToUpper(hex.EncodeToString(got)) != c.want {
			t.Errorf("%s: %X, want %s", c.name, got, c.want)
		}
		if err := CheckKey(got); err != nil {
			t.Errorf("%s: CheckKey: %v", c.name, err)
		}
		if i > 0 && c.want != "" && c.partition >= cases[i-1].partition && bytes.Compare(list[i-1].bytes, got) >= 0 {
			t.Errorf("%s does not sort after %s", c.name, list[i-1].name)
		}
		list = append(list, golden{c.name, got})
	}
	list = append(list,
		golden{"trailer of seq 5 put", AppendTrailer(nil, 5, KindPut)},
		golden{"trailer of seq 6 put", AppendTrailer(nil, 6, KindPut)},
		golden{"trailer of seq 6 delete", AppendTrailer(nil, 6, KindDelete)},
		golden{"trailer of the last seq", AppendTrailer(nil, MaxSeq, KindPut)},
		golden{"table", AppendTable(nil, 16)},
		golden{"partition start", AppendPartitionStart(nil, 16, "a")},
		golden{"partition", AppendPartition(nil, 16, "a")},
		golden{"partition end", AppendPartitionEnd(nil, 16, "a")},
		golden{"partition prefix end", append(AppendPartitionStart(nil, 16, "a"), afterContinuation)},
		golden{"row start", AppendRowStart(nil, 16, "a", "b")},
		golden{"row end", AppendRowEnd(nil, 16, "a", "b")},
		golden{"row prefix end", append(AppendRowStart(nil, 16, "a", "b"), afterContinuation)},
	)
	checkGolden(t, "keys", list)
	if got := hex.EncodeToString(AppendTrailer(nil, 5, KindPut)); got != "fffffffffffffafd" {
		t.Errorf("trailer of seq 5 put: %s", got)
	}
	if got := hex.EncodeToString(AppendTrailer(nil, 6, KindPut)); got != "fffffffffffff9fd" {
		t.Errorf("trailer of seq 6 put: %s", got)
	}
}

// borders are the first and last characters of every class that the encoding, UTF-8 or
// UTF-16 distinguishes.
var borders = []rune{
	0x20, 0x21, 0x41, 0x7E, 0xA0, 0xFF, 0x100, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF,
	0xE000, 0xEFFF, 0xF000, 0xFFFD, 0xFFFE, 0xFFFF,
	0x10000, 0x103FF, 0x10400, 0x1F600, 0xFFFFF, 0x100000, 0x10FC00, 0x10FFFF,
}

// borderTexts are all texts of at most two characters of borders.
func borderTexts() []string {
	texts := []string{""}
	for _, a := range borders {
		texts = append(texts, string(a))
		for _, b := range borders {
			texts = append(texts, string([]rune{a, b}))
		}
	}
	return texts
}

func units(s string) []uint16 { return utf16.Encode([]rune(s)) }

// TestKeyOrder compares the order of keys with that of code units for all pairs of
// border texts, as RowKey and as PartitionKey.
func TestKeyOrder(t *testing.T) {
	texts := borderTexts()
	code := make([][]uint16, len(texts))
	asRow, asPartition := make([][]byte, len(texts)), make([][]byte, len(texts))
	for i, s := range texts {
		code[i] = units(s)
		asRow[i] = AppendKey(nil, 16, "p", s)
		asPartition[i] = AppendKey(nil, 16, s, texts[(i*31)%len(texts)])
		if err := CheckKey(asPartition[i]); err != nil {
			t.Fatalf("CheckKey of %q: %v", s, err)
		}
	}
	for i := range texts {
		for j := range texts {
			want := slices.Compare(code[i], code[j])
			if got := bytes.Compare(asRow[i], asRow[j]); got != want {
				t.Fatalf("RowKey %q to %q: %d, want %d", texts[i], texts[j], got, want)
			}
			if got := bytes.Compare(asPartition[i], asPartition[j]); i != j && got != want {
				t.Fatalf("PartitionKey %q to %q: %d, want %d", texts[i], texts[j], got, want)
			}
		}
	}
}

// TestBounds checks that each bound has the order that its name promises.
func TestBounds(t *testing.T) {
	race.SkipOneGoroutine(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	texts := borderTexts()
	pick := func() string { return texts[rnd.IntN(len(texts))] }
	order := func(a, b string) int { return slices.Compare(units(a), units(b)) }
	begins := func(s, p string) bool { return strings.HasPrefix(s, p) }
	for range 200_000 {
		p, r, a, b := pick(), pick(), pick(), pick()
		if rnd.IntN(2) == 0 {
			p = a
		}
		if rnd.IntN(4) == 0 {
			r = b
		}
		key := AppendKey(nil, 16, p, r)
		cp := order(p, a)
		cr := cmp.Or(cp, order(r, b)) // of (p, r) to (a, b)
		for _, c := range []struct {
			name  string
			bound []byte
			below bool // the key is below the bound
		}{
			{"table", AppendTable(nil, 16), false},
			{"next table", AppendTable(nil, 17), true},
			{"partition start", AppendPartitionStart(nil, 16, a), cp < 0},
			{"partition", AppendPartition(nil, 16, a), cp < 0},
			{"partition end", AppendPartitionEnd(nil, 16, a), cp <= 0},
			{"partition prefix end", append(AppendPartitionStart(nil, 16, a), afterContinuation), cp < 0 || begins(p, a)},
			{"row start", AppendRowStart(nil, 16, a, b), cr < 0},
			{"row end", AppendRowEnd(nil, 16, a, b), cr <= 0},
			{"row prefix end", append(AppendRowStart(nil, 16, a, b), afterContinuation), cr < 0 || cp == 0 && begins(r, b)},
		} {
			if got := bytes.Compare(key, c.bound) < 0; got != c.below {
				t.Fatalf("seed %d: (%q, %q) below the %s of (%q, %q) = %t, want %t", seed, p, r, c.name, a, b, got, c.below)
			}
		}
	}
}

func TestSplitKey(t *testing.T) {
	for _, p := range borderTexts() {
		for _, r := range []string{"", "r", p + "x", "\U0001F600" + p} {
			key := AppendKey(nil, 77, p, r)
			table, pc, rc, ok := SplitKey(key)
			if !ok || table != 77 {
				t.Fatalf("SplitKey(%x) = %d %t", key, table, ok)
			}
			if gp, gr := string(AppendUTF8(nil, pc)), string(AppendUTF8(nil, rc)); gp != p || gr != r {
				t.Fatalf("key of (%q, %q) splits into (%q, %q)", p, r, gp, gr)
			}
			prefix := AppendPartition(nil, 77, p)
			if n := PartitionLen(key); n != len(prefix) || !bytes.Equal(key[:n], prefix) {
				t.Fatalf("PartitionLen(%x) = %d, want %d", key, n, len(prefix))
			}
			if PartitionHash(key) != PartitionHash(prefix) || PartitionHash(key) != KeyHash(prefix) {
				t.Fatalf("PartitionHash of %x differs from that of its partition", key)
			}
			end := AppendPartitionEnd(nil, 77, p)
			if !IsPartitionEnd(end) || !bytes.Equal(AppendPartitionOfEnd(nil, end), prefix) {
				t.Fatalf("partition of the end %x is not %x", end, prefix)
			}
			for _, b := range [][]byte{prefix, key, AppendRowEnd(nil, 77, p, r), nil, {0, 0, 0, 2}} {
				if IsPartitionEnd(b) {
					t.Fatalf("IsPartitionEnd accepts %x", b)
				}
			}
			user, seq, kind := SplitTrailer(AppendTrailer(slices.Clone(key), MaxSeq-5, KindDelete))
			if !bytes.Equal(user, key) || seq != MaxSeq-5 || kind != KindDelete {
				t.Fatalf("SplitTrailer = %x %d %d", user, seq, kind)
			}
		}
	}
}

func TestCheckKeyRefuses(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, c := range []struct {
		name, hex string
		off       int64
	}{
		{"empty", "", 0},
		{"table id cut", "000000", 3},
		{"no component", "00000010", 4},
		{"one component", "00000010 61 01", 6},
		{"second without end", "00000010 61 01 62", 7},
		{"bytes after", "00000010 61 01 62 01 63", 8},
		{"control character", "00000010 1F 01 62 01", 4},
		{"bound 02", "00000010 61 02", 5},
		{"bound FF", "00000010 61 01 FF", 6},
		{"lone continuation", "00000010 80 01 62 01", 4},
		{"overlong 2", "00000010 C1BF 01 62 01", 4},
		{"overlong 3", "00000010 E09FBF 01 62 01", 4},
		{"UTF-8 of 4 bytes", "00000010 F09F9880 01 62 01", 4},
		{"lead of 4 bytes before two", "00000010 F0A080 01 62 01", 4},
		{"other lead of 4 bytes before two", "00000010 F18080 01 62 01", 4},
		{"2 bytes without continuation", "00000010 C361 01 62 01", 4},
		{"2 bytes cut", "00000010 C3", 4},
		{"3 bytes cut by the end", "00000010 E282 01 62 01", 4},
		{"high surrogate alone", "00000010 EDA0BD 01 62 01", 4},
		{"low surrogate alone", "00000010 EDB880 01 62 01", 4},
		{"two high surrogates", "00000010 EDA0BD EDA0BD 01 62 01", 4},
		{"two low surrogates", "00000010 EDB880 EDB880 01 62 01", 4},
		{"pair cut", "00000010 EDA0BD EDB8", 4},
		{"too long", "00000010 01" + hex.EncodeToString([]byte(long)) + "01", 5},
		{"too long in pairs", "00000010" + strings.Repeat("EDA0BDEDB880", 513) + "01 01", 4},
	} {
		key, err := hex.DecodeString(strings.ReplaceAll(c.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		err = CheckKey(key)
		var damage *corrupt.Error
		if !errors.As(err, &damage) || damage.Offset != c.off {
			t.Errorf("%s: %v, want damage at %d", c.name, err, c.off)
		}
		if err := CheckInternalKey(AppendTrailer(key, 1, KindPut)); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: CheckInternalKey = %v", c.name, err)
		}
	}
	for _, n := range []int{1024, 1023, 0} {
		if err := CheckKey(AppendKey(nil, 1, long[:n], long[:n])); err != nil {
			t.Errorf("%d code units: %v", n, err)
		}
	}
	longest := AppendKey(nil, 1, strings.Repeat("\uFFFF", 1024), strings.Repeat("\U0010FFFF", 512))
	if err := CheckKey(longest); err != nil || len(longest) != MaxKeyLen {
		t.Errorf("longest key of %d bytes, want %d: %v", len(longest), MaxKeyLen, err)
	}
	key := AppendKey(nil, 1, "p", "r")
	for kind := range 256 {
		err := CheckInternalKey(AppendTrailer(slices.Clone(key), 1, Kind(kind)))
		if want := kind == 1 || kind == 2; (err == nil) != want {
			t.Errorf("CheckInternalKey with kind %d: %v", kind, err)
		}
	}
	if err := CheckInternalKey(key[:7]); err == nil {
		t.Error("CheckInternalKey of 7 bytes: no error")
	}
}

func TestSplitKeyRefuses(t *testing.T) {
	for _, key := range []string{"", "\x00\x00\x00\x10", "\x00\x00\x00\x10a", "\x00\x00\x00\x10a\x01", "\x00\x00\x00\x10a\x01b", "\x01\x01\x01\x01"} {
		if _, _, _, ok := SplitKey([]byte(key)); ok {
			t.Errorf("SplitKey(%q) = ok", key)
		}
	}
}

// TestCommonLen compares texts of up to 20 bytes that first differ at each byte, or nowhere.
func TestCommonLen(t *testing.T) {
	text := []byte("abcdefghijklmnopqrst")
	for n := range len(text) + 1 {
		for m := range len(text) + 1 {
			for at := range min(n, m) + 1 {
				other := bytes.Clone(text[:m])
				if at < m {
					other[at] ^= 0x80
				}
				if got := CommonLen(text[:n], other); got != at {
					t.Errorf("CommonLen(%q, %q) = %d, want %d", text[:n], other, got, at)
				}
			}
		}
	}
}

func TestKeysDoNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	key := AppendKey(nil, 16, "dev-000001", "\U0001F600 1700000000000")
	for name, fn := range map[string]func(){
		"AppendKey":  func() { dst = AppendKey(dst[:0], 16, "dev-000001", "\U0001F600 1700000000000") },
		"AppendUTF8": func() { dst = AppendUTF8(dst[:0], key[4:len(key)-1]) },
		"CheckKey":   func() { _ = CheckKey(key) },
		"hashes":     func() { _ = PartitionHash(key) + KeyHash(key) },
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
