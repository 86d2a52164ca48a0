package transfer_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
	"github.com/tablerock-db/tablerock/store"
)

// describe formats an entity on one line, each value with its type.
func describe(e edm.Entity) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q", e.Key.Partition, e.Key.Row)
	for _, p := range e.Properties {
		fmt.Fprintf(&b, " %s=%#v", p.Name, p.Value)
	}
	return b.String()
}

// readAll reads a text. It returns the lines and the entity of each record, or its
// error.
func readAll(t *testing.T, text string, o transfer.ReadOptions) []string {
	t.Helper()
	o.Name = "f"
	r := transfer.NewReader(strings.NewReader(text), o)
	var got []string
	for range 1000 {
		rec, err := r.Next()
		var line *transfer.LineError
		switch {
		case err == io.EOF:
			return got
		case errors.As(err, &line):
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%v does not match store.ErrInvalid", err)
			}
			got = append(got, err.Error())
		case err != nil:
			if _, again := r.Next(); again != err {
				t.Errorf("after the error %v, Next returns %v", err, again)
			}
			return append(got, "fatal: "+err.Error())
		default:
			got = append(got, fmt.Sprintf("%d-%d %s", rec.First, rec.Last, describe(rec.Entity)))
		}
	}
	t.Fatal("the reader does not reach the end of the file")
	return nil
}

const longTime = `"2024-01-31T12:00:00.123456789Z" loses digits, because an Edm.DateTime has at most 7 of a second's fraction; round it`

const dateTimeRule = "an Edm.DateTime is YYYY-MM-DDThh:mm:ss, an optional fraction, then Z, an offset such as +hh:mm, or nothing for UTC"

func TestReadCSV(t *testing.T) {
	const head = "PartitionKey,RowKey"
	for _, c := range []struct {
		name string
		in   string
		o    transfer.ReadOptions
		want []string
	}{
		{"strings", head + ",a,b\np,r,x,\"y z\"\n\"\",\"\",,\"\"\n", transfer.ReadOptions{}, []string{
			`2-2 "p" "r" a=Edm.String("x") b=Edm.String("y z")`, `3-3 "" "" b=Edm.String("")`,
		}},
		{"every type", head + ",s@Edm.String,b@Edm.Binary,o@Edm.Boolean,i@Edm.Int32,l@Edm.Int64,d@Edm.Double,t@Edm.DateTime,g@Edm.Guid\n" +
			"p,r,1,AAE=,True,-7,9223372036854775807,1.5,2020-01-01T02:00:00+02:00,A455C695-df98-5678-aaaa-81d3367e5a34\n" +
			"p,s,,\"\",,,,NaN,,\n", transfer.ReadOptions{}, []string{
			`2-2 "p" "r" s=Edm.String("1") b=Edm.Binary("\x00\x01") o=Edm.Boolean(true) i=Edm.Int32(-7) l=Edm.Int64(9223372036854775807) ` +
				`d=Edm.Double(1.5) t=Edm.DateTime(2020-01-01T00:00:00Z) g=Edm.Guid(a455c695-df98-5678-aaaa-81d3367e5a34)`,
			`3-3 "p" "s" b=Edm.Binary("") d=Edm.Double(NaN)`,
		}},
		{
			"a time with too many digits", head + ",T@DateTime\np,1,2024-01-31T12:00:00.123456789Z\np,2,2024-01-31T12:00:00.123456700Z\n",
			transfer.ReadOptions{},
			[]string{`f:2: column "T": ` + longTime, `3-3 "p" "2" T=Edm.DateTime(2024-01-31T12:00:00.1234567Z)`},
		},
		{
			"types by row", "b@type,b@Edm.Int32," + head + "\nEdm.Int64,5,p,1\n,6,p,2\nEdm.String,7,p,3\nEdm.Int64,,p,4\nEdm.Odd,8,p,5\n",
			transfer.ReadOptions{},
			[]string{
				`2-2 "p" "1" b=Edm.Int64(5)`, `3-3 "p" "2" b=Edm.Int32(6)`, `4-4 "p" "3" b=Edm.String("7")`, `5-5 "p" "4"`,
				`f:6: column "b@type" has unknown type "Edm.Odd", want one of Edm.String, Binary, Boolean, Int32, Int64, Double, DateTime, Guid`,
			},
		},
		{
			"types of Storage Explorer, in the first row only", head + ",a,a@type,b,b@type\np,1,5,Int64,x,String\np,2,6,,7,\np,3,,,,\np,4,8,,,\n",
			transfer.ReadOptions{},
			[]string{
				`2-2 "p" "1" a=Edm.Int64(5) b=Edm.String("x")`, `3-3 "p" "2" a=Edm.Int64(6) b=Edm.String("7")`, `4-4 "p" "3"`, `5-5 "p" "4" a=Edm.Int64(8)`,
			},
		},
		{
			"types that change half way", head + ",a,a@type\np,1,5,Int32\np,2,6,\np,3,x,\np,4,x,String\np,5,7,\n",
			transfer.ReadOptions{},
			[]string{
				`2-2 "p" "1" a=Edm.Int32(5)`, `3-3 "p" "2" a=Edm.Int32(6)`,
				`f:4: column "a": "x": an Edm.Int32 is a whole number from -2147483648 to 2147483647 (Edm.Int32 is the type in line 2; ` +
					`if it ends there, write the type of this row in column "a@type")`,
				`5-5 "p" "4" a=Edm.String("x")`, `6-6 "p" "5" a=Edm.String("7")`,
			},
		},
		{
			"a value before any type", head + ",a,a@type\np,1,5,\np,2,,Guid\n",
			transfer.ReadOptions{},
			[]string{
				`f:2: column "a" has a value and no type yet; write its type in column "a@type", or in the header as a@Edm.String`,
				`3-3 "p" "2"`,
			},
		},
		{
			"types of refused rows", head + ",a,a@type,b,b@type\n,1,x,Int32,5,Int32\np,2,7,,7,\np,3,x,Odd,7,Int64\np,4,,,7,\np,5,7,,7,\n",
			transfer.ReadOptions{},
			[]string{
				`f:2: column "PartitionKey" is empty, but every entity has that key; write an empty key as ""`,
				`3-3 "p" "2" a=Edm.Int32(7) b=Edm.Int32(7)`,
				`f:4: column "a@type" has unknown type "Odd", want one of Edm.String, Binary, Boolean, Int32, Int64, Double, DateTime, Guid`,
				`5-5 "p" "4" b=Edm.Int64(7)`,
				`f:6: column "a" has a value and no type yet; write its type in column "a@type", or in the header as a@Edm.String`,
			},
		},
		{"bare types in the header", head + ",a@Int32\np,1,5\n", transfer.ReadOptions{}, []string{`2-2 "p" "1" a=Edm.Int32(5)`}},
		{"key columns", "land,id,PLZ\nde,7,1\n", transfer.ReadOptions{PartitionKey: "land", RowKey: "id"}, []string{`2-2 "de" "7" PLZ=Edm.String("1")`}},
		{"one key column", "id,n@Edm.Int32\n7,1\n", transfer.ReadOptions{PartitionKey: "id", RowKey: "id"}, []string{`2-2 "7" "7" n=Edm.Int32(1)`}},
		{
			"a given header", "0041;LATIN A;Lu\n0042;;Lu\n",
			transfer.ReadOptions{Delimiter: ';', Header: []string{"code", "name", "cat"}, PartitionKey: "cat", RowKey: "code"},
			[]string{
				`1-1 "Lu" "0041" name=Edm.String("LATIN A")`, `2-2 "Lu" "0042"`,
			},
		},
		{"a date is midnight in UTC", head + ",t@Edm.DateTime\np,1,2024-02-29\np,2,2023-02-29\np,3,2024/02/29\n", transfer.ReadOptions{}, []string{
			`2-2 "p" "1" t=Edm.DateTime(2024-02-29T00:00:00Z)`,
			`f:3: column "t": "2023-02-29T00:00:00Z": ` + dateTimeRule, `f:4: column "t": "2024/02/29": ` + dateTimeRule,
		}},
		{
			"a blank before the time", head + ",t@Edm.DateTime\np,1,2024-02-29 10:00:00.5\np,2,2024-02-29 10:00:00+02:00\np,3,2024-02-29  1:00:00\n" +
				"p,4,2024-02-29 10:00:00.5+02\np,5,2024-02-29 \np,6,2024-02-29T10:00:00+02\n",
			transfer.ReadOptions{},
			[]string{
				`2-2 "p" "1" t=Edm.DateTime(2024-02-29T10:00:00.5Z)`, `3-3 "p" "2" t=Edm.DateTime(2024-02-29T08:00:00Z)`,
				`f:4: column "t": "2024-02-29T 1:00:00": ` + dateTimeRule, `5-5 "p" "4" t=Edm.DateTime(2024-02-29T08:00:00.5Z)`,
				`f:6: column "t": "2024-02-29T": ` + dateTimeRule, `f:7: column "t": "2024-02-29T10:00:00+02": ` + dateTimeRule,
			},
		},
		{"Timestamp is ignored", head + ",Timestamp@Edm.DateTime,a\np,r,whenever,1\n", transfer.ReadOptions{}, []string{`2-2 "p" "r" a=Edm.String("1")`}},
		{"UTF-8 byte order mark, CR LF", "\xef\xbb\xbf" + head + "\r\np,r\r\n", transfer.ReadOptions{}, []string{`2-2 "p" "r"`}},
		{"no rows", head + "\n", transfer.ReadOptions{}, nil},
		{"bad rows", head + ",n@Edm.Int32\np,1,x\np,2\np,3,3\n,4,4\np/,5,5\np,6,2147483648\np,7,\xff\np,\"8\nx\",7\np,9,9\n", transfer.ReadOptions{}, []string{
			`f:2: column "n": "x": an Edm.Int32 is a whole number from -2147483648 to 2147483647`,
			`f:3: 2 cells, but there are 3 columns`,
			`4-4 "p" "3" n=Edm.Int32(3)`,
			`f:5: column "PartitionKey" is empty, but every entity has that key; write an empty key as ""`,
			`f:6: PartitionKey: '/' (U+002F) at offset 1 of "p/"; a key has none of / \ # ? and no control characters`,
			`f:7: column "n": "2147483648": an Edm.Int32 is a whole number from -2147483648 to 2147483647`,
			`f:8: column "n": "\xff": an Edm.Int32 is a whole number from -2147483648 to 2147483647`,
			`f: lines 9 to 10: RowKey: '\n' (U+000A) at offset 1 of "8\nx"; a key has none of / \ # ? and no control characters`,
			`11-11 "p" "9" n=Edm.Int32(9)`,
		}},
		{"nothing", "", transfer.ReadOptions{}, []string{`fatal: f: line 1, header: the file is empty; the first line must name the columns`}},
		{
			"no key column", "id,n\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: no column "PartitionKey" (columns: "id", "n"); choose the column that has the PartitionKey`},
		},
		{
			"many columns, no key", "PartitionKey,a,b,c,d,e,f,g,h,i\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: no column "RowKey" (columns: "PartitionKey", "a", "b", "c", "d", "e", "f", "g" and 2 more); ` +
				`choose the column that has the RowKey`},
		},
		{"a column twice", head + ",a,a\n", transfer.ReadOptions{}, []string{`fatal: f: header: duplicate column "a"`}},
		{"a column twice with types", head + ",a,a@Edm.Int32\n", transfer.ReadOptions{}, []string{`fatal: f: header: duplicate column "a@Edm.Int32"`}},
		{"types without a column", head + ",a@type\n", transfer.ReadOptions{}, []string{`fatal: f: header: column "a@type" holds types, but there is no column "a"`}},
		{
			"an unknown type", head + ",a@Int16\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: column "a@Int16" has unknown type "Int16", want one of Edm.String, Binary, Boolean, Int32, Int64, Double, DateTime, Guid`},
		},
		{
			"a typed key", "PartitionKey,RowKey@Edm.Guid\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: column "RowKey@Edm.Guid" is a key; keys have type Edm.String`},
		},
		{
			"another delimiter", "PartitionKey;RowKey;a\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: only one column, "PartitionKey;RowKey;a"; choose the delimiter of the file, which is not ','`},
		},
		{
			"two candidates for a key", "PartitionKey,RowKey,id\n",
			transfer.ReadOptions{PartitionKey: "id"},
			[]string{`fatal: f: header: column 1 is named PartitionKey, but another column is chosen as that key; rename it, or choose it as the key`},
		},
		{
			"a mistyped key", "PartitionKey,RowKey,id\n",
			transfer.ReadOptions{PartitionKey: "ID"},
			[]string{`fatal: f: header: no column "ID" (columns: "PartitionKey", "RowKey", "id"); choose the column that has the PartitionKey`},
		},
		{
			"lines that end in CR", "PartitionKey,RowKey,a\rp,1,x\r",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: the lines end in CR, or the name of a column has one; save the file with LF or CR LF`},
		},
		{"no name", head + ",\n", transfer.ReadOptions{}, []string{`fatal: f: header: column 3 has no name`}},
		{
			"a bad name", head + ",a b\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: header: column 3: property "a b": ' ' (U+0020) at offset 1; a property's name is an identifier of letters, digits ` +
				`and _, begins with a letter or _, and is not PartitionKey, RowKey or Timestamp`},
		},
		{
			"a bad header", "a\"b\n",
			transfer.ReadOptions{},
			[]string{`fatal: f: line 1, header: a quote inside unquoted cell 1; quote the whole cell and write "" for each quote`},
		},
		{"UTF-16", "\xff\xfea\x00", transfer.ReadOptions{}, []string{`fatal: f: the file is UTF-16; save it as UTF-8`}},
		{"gzip", "\x1f\x8b\x08", transfer.ReadOptions{}, []string{`fatal: f: the gzip data is truncated; copy the file again`}},
		{"a spreadsheet", "PK\x03\x04", transfer.ReadOptions{}, []string{`fatal: f: the file is a ZIP archive or a spreadsheet; save it as CSV`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Format = transfer.CSV
			if d := cmp.Diff(c.want, readAll(t, c.in, c.o)); d != "" {
				t.Errorf("%q (-want +got):\n%s", c.in, d)
			}
		})
	}
}

func TestReadJSONL(t *testing.T) {
	for _, c := range []struct {
		name string
		in   string
		o    transfer.ReadOptions
		want []string
	}{
		{"nothing", "", transfer.ReadOptions{}, nil},
		{
			"lines",
			"{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"n\":1}\r\n\n \t\n{\"odata.etag\":\"x\",\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"Timestamp\":\"x\"}",
			transfer.ReadOptions{},
			[]string{
				`1-1 "p" "1" n=Edm.Int32(1)`, `4-4 "p" "2"`,
			},
		},
		{"key Timestamp", `{"id":"7","Timestamp":"2024-02-03"}`, transfer.ReadOptions{PartitionKey: "id", RowKey: "Timestamp"}, []string{`1-1 "7" "2024-02-03"`}},
		{"key members", `{"c":"de","id":"7"}`, transfer.ReadOptions{PartitionKey: "c", RowKey: "id"}, []string{`1-1 "de" "7"`}},
		{
			"bad lines",
			"{\"PartitionKey\":\"p\"}\nx\n{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\n\"n\":1}\n{\"PartitionKey\":\"p\",\"RowKey\":\"#\"}\n" +
				"{\"PartitionKey\":\"p\",\"RowKey\":\"6\",\"a b\":1}\n{\"PartitionKey\":\"p\",\"RowKey\":\"7\"}\n",
			transfer.ReadOptions{},
			[]string{
				`f:1: RowKey is missing; every entity has one`,
				`f:2: offset 0: found "x", want an object`,
				`f:3: offset 33: the JSON ends before the name of a member`,
				`f:4: offset 0: found "\"", want an object`,
				`f:5: RowKey: '#' (U+0023) at offset 0 of "#"; a key has none of / \ # ? and no control characters`,
				`f:6: property "a b": ' ' (U+0020) at offset 1; a property's name is an identifier of letters, digits and _, begins with a letter or _,` +
					` and is not PartitionKey, RowKey or Timestamp`,
				`7-7 "p" "7"`,
			},
		},
		{
			"a type without Edm",
			`{"PartitionKey":"p","RowKey":"1","G@odata.type":"Guid","G":"x"}`,
			transfer.ReadOptions{},
			[]string{
				`f:1: member "G" at offset 48: unknown type "Guid", ` +
					`want Edm.String, Edm.Binary, Edm.Boolean, Edm.Int32, Edm.Int64, Edm.Double, Edm.DateTime or Edm.Guid`,
			},
		},
		{
			"an integer that no type holds exactly",
			"{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"Big\":9007199254740993}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"Big\":9007199254740992}\n" +
				"{\"PartitionKey\":\"p\",\"RowKey\":\"3\",\"Big@odata.type\":\"Edm.Int64\",\"Big\":9007199254740993}\n",
			transfer.ReadOptions{},
			[]string{
				`f:1: member "Big" at offset 39: 9007199254740993 without a type is an Edm.Double, which is only near it: 9007199254740992; ` +
					`add "Big@odata.type": "Edm.Int64"`,
				`2-2 "p" "2" Big=Edm.Double(9.007199254740992e+15)`,
				`3-3 "p" "3" Big=Edm.Int64(9007199254740993)`,
			},
		},
		{
			"a time with too many digits",
			"{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"T@odata.type\":\"Edm.DateTime\",\"T\":\"2024-01-31T12:00:00.123456789Z\"}\n" +
				"{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"T@odata.type\":\"Edm.DateTime\",\"T\":\"2024-01-31T12:00:00.123456700Z\"}\n",
			transfer.ReadOptions{},
			[]string{`f:1: member "T" at offset 67: ` + longTime, `2-2 "p" "2" T=Edm.DateTime(2024-01-31T12:00:00.1234567Z)`},
		},
		{
			"a long line",
			"{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"x\":\"" + strings.Repeat("x", textfile.MaxRecordBytes) + "\"}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\"}\n",
			transfer.ReadOptions{},
			[]string{
				`f:1: the record is longer than 16777216 bytes`, `2-2 "p" "2"`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Format = transfer.JSONL
			if d := cmp.Diff(c.want, readAll(t, c.in, c.o)); d != "" {
				t.Errorf("%.300q (-want +got):\n%s", c.in, d)
			}
		})
	}
}
