package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// entityOf returns an entity of any bytes. In data, a property has one byte for the type, one
// for the length of its name, the name, and two for the length of the value. The value
// repeats the bytes there are, so that large values need few bytes.
func entityOf(pk, rk string, data []byte) edm.Entity {
	e := edm.Entity{Key: edm.Key{Partition: pk, Row: rk}}
	take := func(n int) []byte {
		n = min(n, len(data))
		b := data[:n]
		data = data[n:]
		return b
	}
	for len(data) >= 4 && len(e.Properties) < 300 {
		head := take(4)
		name := string(take(int(head[1])))
		length := int(binary.LittleEndian.Uint16(head[2:]))
		word := append(bytes.Clone(data[:min(8, len(data))]), make([]byte, 8)...)
		w := binary.LittleEndian.Uint64(word)
		var v edm.Value
		switch t := edm.Type(head[0] % 10); t {
		case edm.TypeString, edm.TypeBinary:
			repeat := 1
			if head[0] >= 128 {
				repeat = int(head[0])
			}
			b := bytes.Repeat(take(length), repeat)
			v = edm.Binary(b)
			if t == edm.TypeString {
				v = edm.StringBytes(b)
			}
		case edm.TypeBoolean:
			v = edm.Boolean(take(1) != nil && w&1 == 1)
		case edm.TypeInt32:
			take(4)
			v = edm.Int32(int32(w))
		case edm.TypeGuid:
			take(8)
			v = edm.GuidWords(w, ^w)
		case edm.TypeInt64, edm.TypeDouble, edm.TypeDateTime:
			take(8)
			v = edm.Fixed(t, w)
		}
		e.Properties = append(e.Properties, edm.Property{Name: name, Value: v})
	}
	return e
}

// FuzzEntity writes any entity to a database. The database accepts it if and only if the
// checks of package edm pass, returns an *edm.Error otherwise, and returns the same bits
// from memory, from an sstable and after a reopen, by key and by query.
func FuzzEntity(f *testing.F) {
	f.Add("p", "r", []byte("\x01\x04\x05\x00Namevalue\x04\x01\x00\x00n\x01\x02\x03\x04\x03\x01\x00\x00b\x01"))
	f.Add("", "", []byte{})
	f.Add("a\U0001F600", "\uFFFF\uE000", []byte("\x05\x01\x00\x00l12345678"+
		"\x06\x01\x00\x00d\x00\x00\x00\x00\x00\x00\xF8\x7F\x07\x01\x00\x00t\x00\x00\x00\x00\x00\x00\x00\x01\x08\x01\x00\x00g"))
	f.Add("a/b", "r", []byte("\x00\x01\x00\x00n"))
	f.Add("p", "r", []byte("\x01\x01\x01\x00a\xFF"))
	f.Add("p", "r", []byte("\xFB\x01\xFF\x01a"+strings.Repeat("0123456789abcdef", 32)))
	f.Add("p", "r", []byte("\x04\x01\x00\x00a1234\x04\x01\x00\x00a1234"))
	f.Add(strings.Repeat("\u6771", 1024), strings.Repeat("\U0001F600", 512), []byte("\x09\x01\x00\x00z"))
	f.Fuzz(func(t *testing.T, pk, rk string, data []byte) {
		e := entityOf(pk, rk, data)
		disk := vfs.NewMem()
		db, err := engine.Open("db", options(disk))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { db.Close() }()
		const table = "Table"
		if err := db.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		want := edm.CheckEntity(&e)
		results, err := db.Apply(t.Context(), table, store.Insert(e))
		if (want == nil) != (err == nil) {
			t.Fatalf("%v: CheckEntity returns %v, Apply %v", e, want, err)
		}
		if err != nil {
			if refusal := (*edm.Error)(nil); !errors.As(err, &refusal) || !errors.Is(err, store.ErrInvalid) {
				t.Fatalf("%v: refused by %v", e, err)
			}
			return
		}
		stored := e
		stored.Timestamp = results[0].Timestamp
		stored.Properties = nil
		for _, p := range e.Properties {
			if !p.Value.IsNull() {
				stored.Properties = append(stored.Properties, p)
			}
		}
		expectEntity(t, "memory", db, table, stored)
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		expectEntity(t, "sstable", db, table, stored)
		if report, err := db.Verify(t.Context()); err != nil || len(report.Findings) > 0 {
			t.Fatalf("Verify: %+v, %v", report, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if db, err = engine.Open("db", options(disk)); err != nil {
			t.Fatal(err)
		}
		expectEntity(t, "opened again", db, table, stored)
	})
}

func expectEntity(t *testing.T, where string, db *engine.DB, table string, want edm.Entity) {
	t.Helper()
	got, err := db.Get(t.Context(), table, want.Key)
	if err != nil || !sameEntity(got, want) {
		t.Fatalf("%s: got %v, %v, want %v", where, got, err, want)
	}
	if _, err := db.Apply(t.Context(), table, store.Insert(want)); !errors.Is(err, store.ErrEntityExists) {
		t.Fatalf("%s: second insert of %v: %v", where, want.Key, err)
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	q := store.Query{Filter: filter.MustParse("PartitionKey eq " + quote(want.Key.Partition) + " and RowKey ge " + quote(want.Key.Row))}
	n := 0
	for e, err := range store.Entities(db.Query(t.Context(), table, q)) {
		if err != nil || !sameEntity(e, want) {
			t.Fatalf("%s: query returns %v, %v, want %v", where, e, err, want)
		}
		n++
	}
	if n != 1 {
		t.Fatalf("%s: query returns %d entities, want 1", where, n)
	}
}
