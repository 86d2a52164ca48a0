package transfer_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// importAnything imports a file and skips invalid rows. An export in either format,
// imported again, must give equal entities.
func importAnything(t *testing.T, file []byte, o transfer.ReadOptions) {
	o.Name = "f"
	st := storetest.NewMap(nil)
	lines := int64(bytes.Count(file, []byte("\n")) + 1)
	check := func(first, last int64) error {
		if first < 1 || last < first || last > lines {
			t.Errorf("lines %d to %d of %d in %q", first, last, lines, file)
		}
		return nil
	}
	_, err := transfer.Import(t.Context(), st, "Tab", transfer.NewReader(bytes.NewReader(file), o), transfer.ImportOptions{
		SkipBad: true, Ack: check, Bad: func(e *transfer.LineError) { check(e.Line, e.Last) }, InFlight: 2,
	})
	if err != nil {
		if !errors.Is(err, store.ErrInvalid) {
			t.Fatalf("import of %q: %v", file, err)
		}
		return
	}
	if tables, err := st.Tables(t.Context(), "", 0); err != nil || len(tables) == 0 {
		return // no row was valid
	}
	want := sortedEntities(t, st)
	for _, f := range []transfer.Format{transfer.CSV, transfer.JSONL} {
		text := exportText(t, st, f)
		back := storetest.NewMap(nil)
		r := transfer.NewReader(strings.NewReader(text), transfer.ReadOptions{Name: "g", Format: f})
		if _, err := transfer.Import(t.Context(), back, "Tab", r, transfer.ImportOptions{Mode: transfer.Insert, InFlight: 2}); err != nil {
			t.Fatalf("%q is exported as %q, whose import fails: %v", file, text, err)
		}
		if d := cmp.Diff(want, sortedEntities(t, back)); d != "" {
			t.Fatalf("%q is exported as %q, which differs (-want +got):\n%s", file, text, d)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("PartitionKey,RowKey,a,b@Edm.Int64,c@type,c\np,1,\"x\"\"y\n\",5,Edm.Double,1.5\r\n\np,2,\"\",,,\np,1,z,9,,w"), byte(','))
	f.Add([]byte("\xef\xbb\xbfRowKey;PartitionKey;Timestamp;t@Edm.DateTime;g@Edm.Guid;d@Edm.Binary\n"+
		"1;\"\";x;2020-01-01T00:00:00.5Z;a455c695-df98-5678-aaaa-81d3367e5a34;AAE=\n"), byte(';'))
	f.Add([]byte("PartitionKey\tRowKey\n\"a\tb\"\t1\n\"open\t2\n"), byte('\t'))
	f.Add([]byte(exportText(f, storeOf(f, unusualEntities(f)), transfer.CSV)), byte(','))
	f.Fuzz(func(t *testing.T, file []byte, delimiter byte) {
		if delimiter == '"' || delimiter == '\n' || delimiter == '\r' || delimiter == 0 || delimiter >= 0x80 {
			t.Skip("not a delimiter")
		}
		importAnything(t, file, transfer.ReadOptions{Format: transfer.CSV, Delimiter: delimiter})
	})
}

func FuzzJSONL(f *testing.F) {
	f.Add([]byte("{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"a@odata.type\":\"Edm.Int64\",\"a\":\"5\"}\r\n\n" +
		"{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"a\":2147483648,\"b\":\"\\ud83d\\ude00\",\"c\":null}\n{bad}\n"))
	f.Add([]byte(exportText(f, storeOf(f, unusualEntities(f)), transfer.JSONL)))
	for _, file := range []string{
		"[", " [{", "[{\"PartitionKey\":\"p\",\"RowKey\":\"1\"} {}]",
		"[{\"PartitionKey\":\"p\",\"RowKey\":\"1\"},{\"a\":1}\n,\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\"}]",
		"\x1f\x8b\x08\x00", "\x28\xb5\x2f\xfd\x00",
	} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		importAnything(t, file, transfer.ReadOptions{Format: transfer.JSONL})
	})
}
