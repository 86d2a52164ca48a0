package odata_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

func ticks(t testing.TB, s string) edm.Ticks {
	t.Helper()
	v, err := edm.ParseTicks(s)
	if err != nil {
		t.Fatalf("ParseTicks(%q): %v", s, err)
	}
	return v
}

func guid(t testing.TB, s string) edm.GUID {
	t.Helper()
	g, err := edm.ParseGUID(s)
	if err != nil {
		t.Fatalf("ParseGUID(%q): %v", s, err)
	}
	return g
}

// everyType has a property of each type.
func everyType(t testing.TB) edm.Entity {
	return edm.Entity{
		Key:       edm.Key{Partition: "a", Row: "1"},
		Timestamp: ticks(t, "2024-02-03T04:05:06.789Z"),
		Properties: edm.Properties{
			{Name: "Title", Value: edm.String("T")},
			{Name: "Pages", Value: edm.Int32(12)},
			{Name: "Price", Value: edm.Double(5)},
			{Name: "Sold", Value: edm.Int64(9000000000)},
			{Name: "Out", Value: edm.DateTime(ticks(t, "2020-01-01T00:00:00Z"))},
			{Name: "In", Value: edm.Boolean(true)},
			{Name: "Id", Value: edm.Guid(guid(t, "A455C695-df98-5678-aaaa-81d3367e5a34"))},
			{Name: "Raw", Value: edm.Binary([]byte{0, 1, 2, 255})},
			{Name: "Inf", Value: edm.Double(math.Inf(-1))},
		},
	}
}

func TestAppendEntity(t *testing.T) {
	strange := edm.Entity{
		Key:       edm.Key{Partition: `say "hi"`, Row: "\u8868\U0001F600"},
		Timestamp: ticks(t, "2014-05-07T08:20:53Z"),
		Properties: edm.Properties{
			{Name: "\u00f4", Value: edm.String("tab\tnewline\nreturn\r\b\f back\\slash \"quote\" \x00\x1f\x7f / ' <&> \u2028 and more")},
			{Name: "Empty", Value: edm.String("")},
			{Name: "Gone"},
		},
	}
	full := everyType(t)
	for _, c := range []struct {
		name string
		in   edm.Entity
		o    odata.Options
		want string
	}{
		{"no metadata", full, odata.Options{}, `{"PartitionKey":"a","RowKey":"1","Timestamp":"2024-02-03T04:05:06.789Z","Title":"T","Pages":12,"Price":5.0,"Sold":"9000000000","Out":"2020-01-01T00:00:00Z","In":true,"Id":"a455c695-df98-5678-aaaa-81d3367e5a34","Raw":"AAEC/w==","Inf":"-Infinity"}`},
		{"minimal", full, odata.Options{Level: odata.Minimal}, `{"odata.etag":"W/\"datetime'2024-02-03T04%3A05%3A06.789Z'\"","PartitionKey":"a","RowKey":"1","Timestamp":"2024-02-03T04:05:06.789Z","Title":"T","Pages":12,"Price":5.0,"Sold@odata.type":"Edm.Int64","Sold":"9000000000","Out@odata.type":"Edm.DateTime","Out":"2020-01-01T00:00:00Z","In":true,"Id@odata.type":"Edm.Guid","Id":"a455c695-df98-5678-aaaa-81d3367e5a34","Raw@odata.type":"Edm.Binary","Raw":"AAEC/w==","Inf@odata.type":"Edm.Double","Inf":"-Infinity"}`},
		{"no properties", edm.Entity{}, odata.Options{Level: odata.Minimal, OmitETag: true}, `{"PartitionKey":"","RowKey":"","Timestamp":"1601-01-01T00:00:00Z"}`},
		{"escapes", strange, odata.Options{}, `{"PartitionKey":"say \"hi\"","RowKey":"表😀","Timestamp":"2014-05-07T08:20:53Z","ô":"tab\tnewline\nreturn\r\b\f back\\slash \"quote\" \u0000\u001f` + "\x7f" + ` / ' <&> ` + "\u2028" + ` and more","Empty":""}`},
		{"escapes in ASCII", strange, odata.Options{ASCII: true}, `{"PartitionKey":"say \"hi\"","RowKey":"\u8868\ud83d\ude00","Timestamp":"2014-05-07T08:20:53Z","\u00f4":"tab\tnewline\nreturn\r\b\f back\\slash \"quote\" \u0000\u001f` + "\x7f" + ` / ' <&> \u2028 and more","Empty":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(odata.AppendEntity([]byte("before "), c.in.View(), c.o))
			if got != "before "+c.want {
				t.Errorf("AppendEntity of %+v:\n got %s\nwant before %s", c.in, got, c.want)
			}
			if !json.Valid([]byte(got[len("before "):])) {
				t.Errorf("encoding/json does not take %s", got)
			}
		})
	}
}

func TestAppendEntityAllocatesNothing(t *testing.T) {
	e := everyType(t)
	row := e.View()
	dst := make([]byte, 0, 4096)
	n := testing.AllocsPerRun(100, func() { dst = odata.AppendEntity(dst[:0], row, odata.Options{Level: odata.Minimal}) })
	if n != 0 {
		t.Errorf("%v allocations for an entity, want 0", n)
	}
}
