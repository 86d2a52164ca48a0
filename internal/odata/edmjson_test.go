package odata_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// edmJSONSeeds are objects on the borders of the typing rules.
var edmJSONSeeds = []string{
	`{"PartitionKey":"\ud83d\ude00","RowKey":"","a":2147483648,"b":"1","b@odata.type":"Edm.Int64","odata.x":[{}]}`,
	`{"PartitionKey":"p","RowKey":"r","d@odata.type":"Edm.Double","d":"NaN","e":-0.0,"f":1E400}`,
	`{"PartitionKey":"p","RowKey":"r","a":-0,"b":1e0,"c":"+.5","c@odata.type":"Edm.Double","d":" 1","d@odata.type":"Edm.Int32"}`,
	`{"PartitionKey":"p","RowKey":"r","a":"TRUE","a@odata.type":"Edm.Boolean","b":"AB==","b@odata.type":"Edm.Binary"}`,
	`{"PartitionKey":"p","RowKey":"r","a":null,"a@odata.type":"Edm.Other","b":1,"b@odata.type":"Edm.Other"}`,
	`{"PartitionKey":"p","RowKey":"r","@odata.type":5,"x@odata.type@odata.type":"Edm.Int32","x@y":1,"@":2,"":3}`,
	`{"PartitionKey":"p","RowKey":"r","a":"1600-12-31T23:59:59Z","a@odata.type":"Edm.DateTime","b":"\ud83d"}`,
	`{"PartitionKey":"p","RowKey":"r","a":1,"a":1}`, `{"PartitionKey":"p","RowKey":"r"}{}`, ` { "PartitionKey" : "p" , "RowKey" : "r" } `,
}

// FuzzEdmJSON compares the JSON methods of edm.Entity, which use package json, with
// the parser and the encoder of this package.
func FuzzEdmJSON(f *testing.F) {
	e := everyType(f)
	f.Add(odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Full}))
	for _, s := range edmJSONSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		want, wantErr := odata.ParseEntity(src, odata.ParseOptions{})
		var got edm.Entity
		err := got.UnmarshalJSON(src)
		got.Timestamp = 0 // the server ignores it
		switch {
		case wantErr != nil && err != nil:
			return
		case (wantErr == nil) != (err == nil):
			if !mayDiffer(src) {
				t.Fatalf("%q: edm says %v, odata says %v", src, err, wantErr)
			}
			return
		}
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Fatalf("%q (-odata +edm):\n%s", src, d)
		}
		checkEdmJSON(t, got)
	})
}

// mayDiffer reports whether edm and odata may disagree about src: edm checks a
// Timestamp, which odata ignores, and accepts null and any number of names.
func mayDiffer(src []byte) bool {
	return string(src) == "null" || containsTimestamp(src) || len(src) > 2*odata.MaxNames
}

// containsTimestamp reports whether src may have a member Timestamp.
func containsTimestamp(src []byte) bool {
	_, err := odata.ParseEntity(src, odata.ParseOptions{PartitionKey: edm.TimestampName})
	kind, ok := err.(*odata.Error)
	return !ok || kind.Kind != odata.MissingKey || kind.Member != edm.TimestampName
}

// checkEdmJSON checks that edm and odata read what the other writes.
func checkEdmJSON(t *testing.T, e edm.Entity) {
	t.Helper()
	text, err := e.MarshalJSON()
	if err != nil {
		if edm.CheckEntity(&e) == nil {
			t.Fatalf("%+v: %v", e, err)
		}
		return
	}
	if got, err := odata.ParseEntity(text, odata.ParseOptions{}); err != nil || !cmp.Equal(e, got, sameBits) {
		t.Fatalf("edm writes %q, which odata reads as %+v, %v, want %+v", text, got, err, e)
	}
	text = odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal})
	var got edm.Entity
	if err := got.UnmarshalJSON(text); err != nil || !cmp.Equal(e, got, sameBits) {
		t.Fatalf("odata writes %q, which edm reads as %+v, %v, want %+v", text, got, err, e)
	}
}

// TestEdmJSON compares the two encodings of every type.
func TestEdmJSON(t *testing.T) {
	e := everyType(t)
	e.Timestamp = 0
	for _, f := range []float64{0, math.Copysign(0, -1), 1e15, 1e16, 123456789012345678, 0.1, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1)} {
		e.Properties = append(e.Properties, edm.Property{Name: "D" + string(rune('a'+len(e.Properties))), Value: edm.Double(f)})
	}
	checkEdmJSON(t, e)
}
