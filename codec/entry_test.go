package codec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
)

func TestEntryRoundTrip(t *testing.T) {
	key := AppendKey(nil, 16, "p", "r")
	for _, e := range []Entry{
		{Kind: KindDelete, Timestamp: edm.MaxTicks, Key: key, Values: []byte{}},
		{Kind: KindPut, Shape: 65535, Timestamp: 1, Key: key, Values: []byte{1, 2, 3}},
		{Kind: KindPut, Shape: 1, Wide: true, Key: bytes.Repeat(key, 600), Values: []byte{}},
		{Kind: KindShape, Shape: 9, Key: []byte{}, Values: []byte("shape")},
	} {
		b := AppendEntry(nil, e)
		got, n, err := DecodeEntry(append(b, "rest"...))
		if err != nil || n != len(b) || n != EntryHeaderLen+len(e.Key)+len(e.Values) {
			t.Fatalf("%+v: %d of %d bytes, %v", e, n, len(b), err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("-encoded +decoded\n%s", diff)
		}
		if cap(got.Key) != len(got.Key) || cap(got.Values) != len(got.Values) {
			t.Errorf("%+v: key or values have capacity beyond their end", e)
		}
		if EntryKind(b) != e.Kind || EntryShape(b) != e.Shape || EntryKeyLen(b) != len(e.Key) || !bytes.Equal(EntryKey(b), e.Key) {
			t.Errorf("%+v: fields that are read one by one differ", e)
		}
		want := e
		want.Timestamp, want.Shape = 8, min(e.Shape, 7) // a delete has no shape
		PatchEntry(b, want.Shape, want.Timestamp)
		got, _, err = DecodeEntry(b)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("patched: %v, -want +got\n%s", err, diff)
		}
	}
}

// TestResetEntry compares a row set by ResetEntry with one set by Reset, and AppendPut with AppendEntry.
func TestResetEntry(t *testing.T) {
	for _, props := range []edm.Properties{nil, sampleProps(), wideProps()} {
		s := NewShape(props)
		values, wide := AppendValues(nil, s, props)
		key := AppendKey(nil, 16, "p", "r")
		var want, got Row
		want.Reset(key, 5, s, wide, values)
		entry := AppendEntry([]byte("before"), Entry{Kind: KindPut, Wide: wide, Shape: 1, Timestamp: 5, Key: key, Values: values})
		got.ResetEntry(entry[len("before"):], s)
		if diff := cmp.Diff(edm.EntityOf(&want), edm.EntityOf(&got)); diff != "" {
			t.Errorf("-parts +entry\n%s", diff)
		}
		put := AppendPut([]byte("before"), key, s, props)
		PatchEntry(put[len("before"):], 1, 5)
		if !bytes.Equal(put, entry) {
			t.Errorf("AppendPut of %d properties, wide = %t: begins with % x, want % x", len(props), wide, put[:24], entry[:24])
		}
	}
}

func TestDecodeEntryRefuses(t *testing.T) {
	key := AppendKey(nil, 16, "p", "r")
	put := AppendEntry(nil, Entry{Kind: KindPut, Shape: 1, Key: key, Values: []byte{1}})
	del := AppendEntry(nil, Entry{Kind: KindDelete, Key: key})
	shape := AppendEntry(nil, Entry{Kind: KindShape, Shape: 1, Values: []byte{1}})
	for _, c := range []struct {
		name string
		src  []byte
		off  int64
	}{
		{"empty", nil, 0},
		{"header cut", put[:17], 17},
		{"kind 0", with(put, 0, 0), 0},
		{"kind of a range tombstone", with(put, 0, byte(KindRangeDelete)), 0},
		{"delete of a range", with(del, 0, byte(KindRangeDelete)), 0},
		{"kind 5", with(put, 0, 5), 0},
		{"unknown flag", with(put, 1, 2), 1},
		{"put without shape", with(put, 2, 0), 0},
		{"put without key", with(put, 16, 0), 0},
		{"key too long", with(put, 17, 0xFF), 0},
		{"key cut", put[:20], 4},
		{"values cut", put[:len(put)-1], 4},
		{"values of 4 GiB", with(with(with(with(put, 4, 0xFF), 5, 0xFF), 6, 0xFF), 7, 0xFF), 4},
		{"time stamp below", with(put, 15, 0x80), 8},
		{"time stamp above", with(put, 15, 0x7F), 8},
		{"delete with shape", with(del, 2, 1), 0},
		{"wide delete", with(del, 1, 1), 0},
		{"delete with values", with(append(del, 1), 4, 1), 0},
		{"delete without key", with(del, 16, 0), 0},
		{"shape without id", with(shape, 2, 0), 0},
		{"wide shape", with(shape, 1, 1), 0},
		{"shape with key", with(shape, 16, 1), 0},
	} {
		_, _, err := DecodeEntry(c.src)
		var damage *corrupt.Error
		if !errors.As(err, &damage) || damage.Offset != c.off {
			t.Errorf("%s: %v, want damage at %d", c.name, err, c.off)
		}
	}
}
