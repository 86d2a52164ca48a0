package odata_test

import (
	"encoding/json"
	"math"
	"strings"
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

// everyType returns an entity with a property of each type.
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

// inBook adds to o the names and URLs of the table Book.
func inBook(o odata.Options) odata.Options {
	o.Metadata, o.Account, o.Base, o.Table = "http://h:1/acct/$metadata#Book/@Element", "acct", "http://h:1/acct", "Book"
	return o
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
		{
			"no metadata", full,
			odata.Options{},
			`{"PartitionKey":"a","RowKey":"1","Timestamp":"2024-02-03T04:05:06.789Z","Title":"T","Pages":12,"Price":5.0,"Sold":"9000000000","Out":` +
				`"2020-01-01T00:00:00Z","In":true,"Id":"a455c695-df98-5678-aaaa-81d3367e5a34","Raw":"AAEC/w==","Inf":"-Infinity"}`,
		},
		{
			"minimal", full,
			odata.Options{Level: odata.Minimal},
			`{"odata.etag":"W/\"datetime'2024-02-03T04%3A05%3A06.789Z'\"","PartitionKey":"a","RowKey":"1","Timestamp":"2024-02-03T04:05:06.789Z",` +
				`"Title":"T","Pages":12,"Price":5.0,"Sold@odata.type":"Edm.Int64","Sold":"9000000000","Out@odata.type":"Edm.DateTime","Out":` +
				`"2020-01-01T00:00:00Z","In":true,"Id@odata.type":"Edm.Guid","Id":"a455c695-df98-5678-aaaa-81d3367e5a34","Raw@odata.type":"Edm.Binary",` +
				`"Raw":"AAEC/w==","Inf@odata.type":"Edm.Double","Inf":"-Infinity"}`,
		},
		{
			"full",
			edm.Entity{Key: full.Key, Timestamp: full.Timestamp, Properties: full.Properties[:4]},
			inBook(odata.Options{Level: odata.Full}),
			`{"odata.metadata":"http://h:1/acct/$metadata#Book/@Element","odata.type":"acct.Book","odata.id":"http://h:1/acct/Book(PartitionKey='a',` +
				`RowKey='1')","odata.etag":"W/\"datetime'2024-02-03T04%3A05%3A06.789Z'\"","odata.editLink":"Book(PartitionKey='a',RowKey='1')",` +
				`"PartitionKey":"a","RowKey":"1","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2024-02-03T04:05:06.789Z","Title":"T","Pages":12,` +
				`"Price":5.0,"Sold@odata.type":"Edm.Int64","Sold":"9000000000"}`,
		},
		{
			"full with escapes",
			edm.Entity{Key: strange.Key},
			inBook(odata.Options{Level: odata.Full, OmitETag: true, ASCII: true}),
			`{"odata.metadata":"http://h:1/acct/$metadata#Book/@Element","odata.type":"acct.Book","odata.id":` +
				`"http://h:1/acct/Book(PartitionKey='say%20%22hi%22',RowKey='%E8%A1%A8%F0%9F%98%80')","odata.editLink":"Book(PartitionKey='say%20%22hi%22',` +
				`RowKey='%E8%A1%A8%F0%9F%98%80')","PartitionKey":"say \"hi\"","RowKey":"\u8868\ud83d\ude00","Timestamp@odata.type":"Edm.DateTime",` +
				`"Timestamp":"1601-01-01T00:00:00Z"}`,
		},
		{
			"metadata",
			edm.Entity{},
			inBook(odata.Options{Level: odata.Minimal, OmitETag: true}),
			`{"odata.metadata":"http://h:1/acct/$metadata#Book/@Element","PartitionKey":"","RowKey":"","Timestamp":"1601-01-01T00:00:00Z"}`,
		},
		{"no metadata in the lowest level", edm.Entity{}, inBook(odata.Options{}), `{"PartitionKey":"","RowKey":"","Timestamp":"1601-01-01T00:00:00Z"}`},
		{
			"selected", full,
			odata.Options{Level: odata.Minimal, Select: []string{"Sold", "xyz", "Timestamp", "Pages", "PartitionKey"}},
			`{"odata.etag":"W/\"datetime'2024-02-03T04%3A05%3A06.789Z'\"","PartitionKey":"a","Timestamp":"2024-02-03T04:05:06.789Z",` +
				`"Sold@odata.type":"Edm.Int64","Sold":"9000000000","xyz":null,"Pages":12}`,
		},
		{
			"selected of null", strange,
			odata.Options{Select: []string{"RowKey", "Gone", "\u00f4\""}, ASCII: true},
			`{"RowKey":"\u8868\ud83d\ude00","Gone":null,"\u00f4\"":null}`,
		},
		{
			"selected in full",
			edm.Entity{},
			odata.Options{Level: odata.Full, Account: "acct", Base: "http://h:1/acct", Table: "Book", OmitETag: true, Select: []string{"Timestamp"}},
			`{"odata.type":"acct.Book","odata.id":"http://h:1/acct/Book(PartitionKey='',RowKey='')","odata.editLink":"Book(PartitionKey='',` +
				`RowKey='')","Timestamp@odata.type":"Edm.DateTime","Timestamp":"1601-01-01T00:00:00Z"}`,
		},
		{"nothing selected", full, odata.Options{Select: []string{}}, `{}`},
		{"no properties", edm.Entity{}, odata.Options{Level: odata.Minimal, OmitETag: true}, `{"PartitionKey":"","RowKey":"","Timestamp":"1601-01-01T00:00:00Z"}`},
		{
			"escapes", strange,
			odata.Options{},
			`{"PartitionKey":"say \"hi\"","RowKey":"表😀","Timestamp":"2014-05-07T08:20:53Z","ô":"tab\tnewline\nreturn\r\b\f back\\slash ` +
				`\"quote\" \u0000\u001f` + "\x7f" + ` / ' <&> ` + "\u2028" + ` and more","Empty":""}`,
		},
		{
			"escapes in ASCII", strange,
			odata.Options{ASCII: true},
			`{"PartitionKey":"say \"hi\"","RowKey":"\u8868\ud83d\ude00","Timestamp":"2014-05-07T08:20:53Z","\u00f4":"tab\tnewline\nreturn\r\b\f ` +
				`back\\slash \"quote\" \u0000\u001f` + "\x7f" + ` / ' <&> \u2028 and more","Empty":""}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(odata.AppendEntity([]byte("before "), c.in.View(), c.o))
			if got != "before "+c.want {
				t.Errorf("AppendEntity of %+v:\n got %s\nwant before %s", c.in, got, c.want)
			}
			if !json.Valid([]byte(got[len("before "):])) {
				t.Errorf("encoding/json rejects %s", got)
			}
		})
	}
}

func TestAppendEntityDoesNotAllocate(t *testing.T) {
	plain := everyType(t)
	strange := everyType(t)
	strange.Key = edm.Key{Partition: "it's \"\u8868\"", Row: "\U0001F600 \u00f4"}
	strange.Properties[0].Value = edm.String("\u8868 and \U0001F600\n" + strings.Repeat("\u00f4", 100))
	for _, c := range []struct {
		name string
		e    edm.Entity
		o    odata.Options
	}{
		{"minimal", plain, inBook(odata.Options{Level: odata.Minimal})},
		{"names", plain, inBook(odata.Options{Level: odata.Minimal, Names: new(odata.Names)})},
		{"full", plain, inBook(odata.Options{Level: odata.Full})},
		{"selected", plain, inBook(odata.Options{Level: odata.Minimal, Select: []string{"RowKey", "Pages", "Raw", "none"}})},
		{"escapes", strange, inBook(odata.Options{Level: odata.Full})},
		{"escapes in ASCII", strange, inBook(odata.Options{Level: odata.Full, ASCII: true})},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := c.e.View()
			dst := make([]byte, 0, 8192)
			n := testing.AllocsPerRun(100, func() { dst = odata.AppendEntity(dst[:0], row, c.o) })
			if n != 0 {
				t.Errorf("%v allocations for %s, want 0", n, dst)
			}
		})
	}
}

func TestAppendFeed(t *testing.T) {
	for _, c := range []struct {
		o    odata.Options
		want string
	}{
		{odata.Options{}, `{"value":[`},
		{odata.Options{Metadata: "m"}, `{"value":[`},
		{
			odata.Options{Level: odata.Minimal, Metadata: "http://h:1/acct/$metadata#Book&$select=\u00f4,\""},
			"{\"odata.metadata\":\"http://h:1/acct/$metadata#Book&$select=\u00f4,\\\"\",\"value\":[",
		},
		{odata.Options{Level: odata.Full, Metadata: "m\u00f4", ASCII: true}, `{"odata.metadata":"m\u00f4","value":[`},
	} {
		if got := string(odata.AppendFeed(nil, c.o)); got != c.want {
			t.Errorf("AppendFeed of %+v: %s, want %s", c.o, got, c.want)
		}
	}
}
