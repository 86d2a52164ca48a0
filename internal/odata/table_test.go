package odata_test

import (
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

func TestAppendTable(t *testing.T) {
	at := odata.Options{Metadata: "http://h:1/acct/$metadata#Tables/@Element", Account: "acct", Base: "http://h:1/acct"}
	for _, c := range []struct {
		level   odata.Level
		selects []string
		want    string
	}{
		{odata.None, nil, `{"TableName":"Book"}`},
		{odata.Minimal, nil, `{"odata.metadata":"http://h:1/acct/$metadata#Tables/@Element","TableName":"Book"}`},
		{
			odata.Full, nil,
			`{"odata.metadata":"http://h:1/acct/$metadata#Tables/@Element","odata.type":"acct.Tables","odata.id":"http://h:1/acct/Tables('Book')",` +
				`"odata.editLink":"Tables('Book')","TableName":"Book"}`,
		},
		{odata.None, []string{"x", "TableName"}, `{"TableName":"Book","x":null}`},
		{odata.None, []string{"x"}, `{"x":null}`},
		{odata.None, []string{}, `{}`},
	} {
		o := at
		o.Level, o.Select = c.level, c.selects
		if got := string(odata.AppendTable(nil, "Book", o)); got != c.want {
			t.Errorf("level %d, select %q:\n got %s\nwant %s", c.level, c.selects, got, c.want)
		}
	}
}

func TestParseTable(t *testing.T) {
	for _, c := range []struct {
		in, want string
		kind     odata.ErrorKind
	}{
		{`{"TableName":"Book"}`, "Book", 0},
		{` { "TableName@odata.type" : "Edm.String" , "TableName" : "B\u006fok" , "odata.metadata" : "x" } `, "Book", 0},
		{`{"TableName":"1 _ \u8868"}`, "1 _ \u8868", 0},
		{`{"TableName":"Book","x":null}`, "Book", 0},
		{`{}`, "", odata.MissingName},
		{`{"TableName":null}`, "", odata.MissingName},
		{`{"TableName":""}`, "", odata.MissingName},
		{`{"tablename":"Book"}`, "", odata.MissingName},
		{`{"TableName":5}`, "", odata.BadValue},
		{`{"TableName":"x","TableName@odata.type":"Edm.Guid"}`, "", odata.BadValue},
		{`{"TableName":"Book","x":1}`, "", odata.BadValue},
		{`{"TableName":"Book","PartitionKey":"p"}`, "", odata.BadValue},
		{`{"TableName":"Book","TableName":"Book"}`, "", odata.Duplicate},
		{`{"TableName":{}}`, "", odata.Malformed},
		{`{"TableName":"Book"}x`, "", odata.Malformed},
		{``, "", odata.Malformed},
	} {
		got, err := odata.ParseTable([]byte(c.in))
		var e *odata.Error
		switch {
		case got != c.want || (err != nil) != (c.kind != 0):
			t.Errorf("ParseTable(%s): %q, %v, want %q", c.in, got, err, c.want)
		case err != nil && (!errors.As(err, &e) || e.Kind != c.kind || !errors.Is(err, edm.ErrInvalid)):
			t.Errorf("ParseTable(%s): %v, want kind %d", c.in, err, c.kind)
		}
	}
}

func TestParseTableMissingNameMessage(t *testing.T) {
	_, err := odata.ParseTable([]byte(`{}`))
	if want := "TableName is missing or empty; every table has one"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
