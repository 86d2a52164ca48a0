package layout

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// entities returns entities with all types, none, and long values.
func entities() []edm.Entity {
	key := edm.Key{Partition: "p\U00010400é", Row: ""}
	all := edm.Properties{
		{Name: "S", Value: edm.String("text")},
		{Name: "B", Value: edm.Binary([]byte{0, 255})},
		{Name: "b", Value: edm.Boolean(true)},
		{Name: "I", Value: edm.Int32(-1)},
		{Name: "L", Value: edm.Int64(1 << 40)},
		{Name: "D", Value: edm.Double(0.5)},
		{Name: "T", Value: edm.DateTime(edm.MaxTicks)},
		{Name: "G", Value: edm.GuidWords(1, 2)},
	}
	long := edm.Properties{{Name: "A", Value: edm.String(strings.Repeat("x", 60_000))}, {Name: "B", Value: edm.String(strings.Repeat("y", 60_000))}}
	return []edm.Entity{
		{Key: key, Timestamp: 1, Properties: all},
		{Key: key, Timestamp: edm.MaxTicks},
		{Key: key, Timestamp: 7, Properties: long},
	}
}

func TestDecode(t *testing.T) {
	var s Shapes
	for range 2 { // the second time from the cache
		for _, e := range entities() {
			k := KeyOf(e.Key)
			v := s.AppendValue(nil, e.Properties, false)
			var row codec.Row
			if err := s.Decode(&row, "tr_entities", UserKey(nil, k.P, k.R), int64(e.Timestamp), v); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, edm.EntityOf(&row)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
}

// TestDecodeDamaged damages each byte of the columns. The error names the table and the key.
func TestDecodeDamaged(t *testing.T) {
	e := entities()[0]
	var s Shapes
	k := KeyOf(e.Key)
	key, v := UserKey(nil, k.P, k.R), s.AppendValue(nil, e.Properties, false)
	var row codec.Row
	refused := 0
	for i := range v {
		for _, bad := range [][]byte{v[:i], append(append(bytes.Clone(v[:i]), v[i]^0x80), v[i+1:]...)} {
			if err := s.Decode(&row, "tr_entities", key, 1, bad); err != nil {
				refused++
				if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "tr_entities") || !strings.Contains(err.Error(), "p = 70eda081") {
					t.Fatalf("byte %d: %v", i, err)
				}
			}
		}
	}
	if refused < len(v) {
		t.Errorf("%d of %d damaged values are refused", refused, 2*len(v))
	}
	for _, ts := range []int64{-1, int64(edm.MaxTicks) + 1} {
		if err := s.Decode(&row, "tr_entities", key, ts, v); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("Timestamp %d: %v", ts, err)
		}
	}
	if err := s.Decode(&row, "tr_entities", UserKey(nil, []byte{0xFF}, nil), 1, v); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("damaged key: %v", err)
	}
}

// TestLongKeys checks which keys have a hash, and that lengths are part of it.
func TestLongKeys(t *testing.T) {
	for _, c := range []struct {
		p, r int
		long bool
	}{{0, 0, false}, {1024, 1024, false}, {880, 0, false}, {440, 440, false}, {881, 0, true}, {440, 441, true}, {1024, 1024, true}} {
		unit := "語"
		if c.p == 1024 && !c.long {
			unit = "x"
		}
		k := KeyOf(edm.Key{Partition: strings.Repeat(unit, c.p), Row: strings.Repeat(unit, c.r)})
		if (k.H != nil) != c.long {
			t.Errorf("%d and %d characters %s: %d bytes, long %v, want %v", c.p, c.r, unit, len(k.P)+len(k.R), k.H != nil, c.long)
		}
	}
	if bytes.Equal(longHash([]byte("ab"), []byte("c")), longHash([]byte("a"), []byte("bc"))) {
		t.Error("two keys have one hash")
	}
}

func FuzzDecode(f *testing.F) {
	var s Shapes
	for _, e := range entities() {
		k := KeyOf(e.Key)
		f.Add(k.P, k.R, int64(e.Timestamp), s.AppendValue(nil, e.Properties, false))
	}
	f.Fuzz(func(t *testing.T, p, r []byte, ts int64, v []byte) {
		var s Shapes
		var row codec.Row
		if s.Decode(&row, "tr_entities", UserKey(nil, p, r), ts, v) != nil {
			return
		}
		e := edm.EntityOf(&row)
		k := KeyOf(e.Key)
		if !bytes.Equal(k.P, p) || !bytes.Equal(k.R, r) {
			t.Errorf("key %x %x becomes %x %x", p, r, k.P, k.R)
		}
		if again := s.AppendValue(nil, e.Properties, false); !bytes.Equal(again, v) {
			t.Errorf("%x becomes %x", v, again)
		}
	})
}
