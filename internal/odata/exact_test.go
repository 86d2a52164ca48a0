package odata_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// TestExactIntegers checks integers around the limits of Int32, Int64 and of the integers
// that a Double holds.
func TestExactIntegers(t *testing.T) {
	const int64Cure, doubleCure = `; add "Big@odata.type": "Edm.Int64"`, `; write it as a string, or add "Big@odata.type": "Edm.Double" to round it`
	for _, c := range []struct {
		value string
		want  edm.Value // of an accepted value
		cure  string    // of a refused one
	}{
		{"0", edm.Int32(0), ""},
		{"-0", edm.Int32(0), ""},
		{"2147483647", edm.Int32(1<<31 - 1), ""},
		{"2147483648", edm.Double(1 << 31), ""},
		{"-2147483649", edm.Double(-1<<31 - 1), ""},
		{"9007199254740991", edm.Double(1<<53 - 1), ""},
		{"9007199254740992", edm.Double(1 << 53), ""},
		{"9007199254740993", edm.Value{}, int64Cure},
		{"-9007199254740993", edm.Value{}, int64Cure},
		{"9007199254740994", edm.Double(1<<53 + 2), ""},
		{"9223372036854774784", edm.Double(1<<63 - 1024), ""},
		{"9223372036854775807", edm.Value{}, int64Cure},
		{"-9223372036854775808", edm.Double(-1 << 63), ""},
		{"-9223372036854775809", edm.Value{}, doubleCure},
		{"9223372036854775808", edm.Double(1 << 63), ""},
		{"12345678901234567890", edm.Value{}, doubleCure},
		{"100000000000000000000", edm.Double(1e20), ""},
		{"1" + strings.Repeat("0", 22), edm.Double(1e22), ""},
		{"1" + strings.Repeat("0", 23), edm.Value{}, doubleCure},
		{"9007199254740993.0", edm.Double(1 << 53), ""}, // decimal numbers are Doubles
		{"9.007199254740993e15", edm.Double(1 << 53), ""},
		{"0.1", edm.Double(0.1), ""},
		{`"9007199254740993"`, edm.String("9007199254740993"), ""},
	} {
		t.Run(c.value, func(t *testing.T) {
			src := []byte(`{"PartitionKey":"p","RowKey":"r","Big":` + c.value + `}`)
			e, err := odata.ParseEntity(src, odata.ParseOptions{Exact: true})
			if c.cure != "" {
				var bad *odata.Error
				if !errors.As(err, &bad) || bad.Kind != odata.BadValue || bad.Offset != 39 || !strings.HasSuffix(err.Error(), c.cure) {
					t.Fatalf("got error %v, want one at offset 39 that ends in %q", err, c.cure)
				}
				if e, err = odata.ParseEntity(src, odata.ParseOptions{}); err != nil {
					t.Fatalf("without the option: %v", err)
				}
				if v := e.Properties[0].Value; v.Type() != edm.TypeDouble {
					t.Errorf("without the option: %#v, want a Double", v)
				}
				return
			}
			if err != nil || len(e.Properties) != 1 || !e.Properties[0].Value.Equal(c.want) {
				t.Errorf("got %#v, error %v; want %#v", e.Properties, err, c.want)
			}
		})
	}
	for _, typed := range []string{`"Big@odata.type":"Edm.Int64","Big":9007199254740993`, `"Big":9007199254740993,"Big@odata.type":"Edm.Double"`} {
		if _, err := odata.ParseEntity([]byte(`{"PartitionKey":"p","RowKey":"r",`+typed+`}`), odata.ParseOptions{Exact: true}); err != nil {
			t.Errorf("%s: %v", typed, err)
		}
	}
}

// TestExactTimes checks that digits beyond the seventh of a fraction are refused unless they are
// zeros, and that the service's rule cuts them.
func TestExactTimes(t *testing.T) {
	const second = "2024-01-31T12:00:00"
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{second + "Z", true},
		{second + ".1234567Z", true},
		{second + ".12345670000", true},
		{second + ".123+05:31", true},
		{second + ".12345671Z", false},
		{second + ".000000000001-01:00", false},
		{second + ".123456789", false},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, err := odata.ParseExact(edm.TypeDateTime, []byte(c.text))
			want := ""
			if !c.ok {
				want = strconv.Quote(c.text) + " loses digits, because an Edm.DateTime has at most 7 of a second's fraction; round it"
			}
			if got := fmt.Sprint(err); got != want && (err != nil || want != "") || err != nil && !errors.Is(err, odata.ErrText) {
				t.Errorf("error %v, want %q", err, want)
			}
			escaped := strings.ReplaceAll(c.text, "-", `\u002d`)
			for _, text := range []string{c.text, escaped} {
				src := []byte(`{"PartitionKey":"p","RowKey":"r","T@odata.type":"Edm.DateTime","T":"` + text + `"}`)
				if _, err := odata.ParseEntity(src, odata.ParseOptions{Exact: true}); (err == nil) != c.ok || err != nil && !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%s: error %v, want %q", src, err, want)
				}
				if e, err := odata.ParseEntity(src, odata.ParseOptions{}); err != nil || len(e.Properties) != 1 {
					t.Errorf("%s: without the option: %v", src, err)
				}
			}
		})
	}
}
