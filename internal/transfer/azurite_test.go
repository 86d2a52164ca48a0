package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// azuriteFile is made by testdata/azurite/make.mjs.
const azuriteFile = "testdata/azurite/" + transfer.AzuriteFile

// readAzurite lists the tables and entities of a file of Azurite.
func readAzurite(t testing.TB, r io.Reader) (list []string, err error) {
	t.Helper()
	err = transfer.ReadAzurite(t.Context(), r, transfer.ReadOptions{Name: "f"}, func(account, table string, rows *transfer.Reader) error {
		list = append(list, "table "+account+"/"+table)
		for {
			rec, err := rows.Next()
			var line *transfer.LineError
			switch {
			case err == io.EOF:
				return nil
			case errors.As(err, &line):
				list = append(list, err.Error())
			case err != nil:
				return err
			default:
				list = append(list, fmt.Sprintf("%d %s", rec.First, describe(rec.Entity)))
			}
		}
	})
	return list, err
}

func TestReadAzurite(t *testing.T) {
	race.SkipOneGoroutine(t)
	data, err := os.ReadFile(azuriteFile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAzurite(t, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	const every = ` Text=Edm.String("line\nfeed, \"quotes\" and 表😀") Empty=Edm.String("") Flag=Edm.Boolean(true) Small=Edm.Int32(-2147483648)` +
		` Big=Edm.Int64(-9223372036854775808) Half=Edm.Double(0.5) Whole=Edm.Double(5) Never=Edm.Double(NaN) Most=Edm.Double(-Inf)` +
		` At=Edm.DateTime(2024-02-29T23:59:59.1234567Z) Id=Edm.Guid(a455c695-df98-5678-aaaa-81d3367e5a34) Bytes=Edm.Binary("\x00\x01\x02\x03")`
	want := []string{
		"table devstoreaccount1/Types",
		`1 "all" "inserted"` + every,
		`2 "all" "upserted"` + every,
		`3 "all" "merged" Kept=Edm.Int32(1) Added=Edm.Int64(7)`,
		`4 "" "" Note=Edm.String("empty keys")`,
		`5 "it's 100%" "ключ" Note=Edm.String("odd keys")`,
		"table devstoreaccount1/Empty",
		"table shop/Orders",
	}
	for i := range 20 {
		partition := []string{"us", "eu"}[i%2]
		want = append(want, fmt.Sprintf(`%d "%s" "%04d" Total=Edm.Double(%d.25) Count=Edm.Int32(%d)`, i+1, partition, i, i, i))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}

	// No prefix looks whole.
	for cut := 0; cut < len(data)-1; cut += 61 {
		if _, err := readAzurite(t, bytes.NewReader(data[:cut])); err == nil {
			t.Fatalf("the first %d of %d bytes gave no error", cut, len(data))
		}
	}
	// Changed bytes give an error or other entities, no panic.
	for at := 0; at < len(data); at += 37 {
		changed := bytes.Clone(data)
		changed[at] ^= 0x11
		_, _ = readAzurite(t, bytes.NewReader(changed))
	}
}

func TestReadAzuriteRefusals(t *testing.T) {
	const tables = `{"collections":[{"name":"$TABLES_COLLECTION$","data":[{"account":"abc","table":"Tab"}]},`
	for _, c := range []struct{ name, in, want string }{
		{"not an object", "[]", `f: not a whole file of Azurite's tables: line 1: JSON syntax: '[' where { is expected`},
		{"other JSON", `{"a":{"collections":[]}}`, "f: not a whole file of Azurite's tables: it has no collections"},
		{"empty", "", "f: not a whole file of Azurite's tables: the JSON text ends before its end: the file is truncated; copy it again"},
		{"no name", `{"collections":[{"data":[],"name":"abc$Tab"}]}`, "f: not a whole file of Azurite's tables: a collection has data before its name"},
		{
			"a bad entity",
			tables + `{"name":"abc$tab","data":[{"PartitionKey":"p"},{"PartitionKey":"p","RowKey":"1","properties":{"X":9007199254740993}},` +
				`{"PartitionKey":"p","RowKey":"1","properties":{"G":"x","G@odata.type":"Edm.Guid"}}]}]}`,
			"table abc/Tab\n" +
				"f: account abc, table Tab: entity 1: an entity of Azurite has the members PartitionKey, RowKey and properties\n" +
				"f: account abc, table Tab: entity 2: member \"X\" at offset 5: 9007199254740993 without a type is an Edm.Double, " +
				"which is only near it: 9007199254740992; add \"X@odata.type\": \"Edm.Int64\"\n" +
				"f: account abc, table Tab: entity 3: member \"G\" at offset 5: \"x\": an Edm.Guid is ",
		},
		{
			"a time with too many digits",
			tables + `{"name":"abc$tab","data":[{"PartitionKey":"p","RowKey":"1","properties":` +
				`{"T":"2024-01-31T12:00:00.123456789Z","T@odata.type":"Edm.DateTime"}}]}]}`,
			"table abc/Tab\n1 \"p\" \"1\" T=Edm.DateTime(2024-01-31T12:00:00.1234567Z)",
		},
		{"a deleted table", tables + `{"name":"abc$Gone","data":[{"a":1}]}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := readAzurite(t, strings.NewReader(c.in))
			if err != nil {
				list = append(list, err.Error())
			}
			if got := strings.Join(list, "\n"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
	for _, data := range [][]byte{
		compressed(t, transfer.Gzip, tables+"]}"),  // its last byte is one of the length
		compressed(t, transfer.Gzip, tables+"???"), // damage comes before syntax
	} {
		data[len(data)-1] ^= 1
		if _, err := readAzurite(t, bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), "the gzip data is damaged") {
			t.Errorf("a damaged file: %v", err)
		}
	}
	stop := errors.New("stop")
	in := strings.NewReader(tables + `{"name":"abc$Tab","data":[]}]}`)
	if err := transfer.ReadAzurite(t.Context(), in, transfer.ReadOptions{}, func(string, string, *transfer.Reader) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want that of the function", err)
	}
}
