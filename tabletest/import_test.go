package tabletest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/tabletest"
)

// TestImport reads the same two entities from each format.
func TestImport(t *testing.T) {
	const lines = `{"PartitionKey":"p","RowKey":"2","Total":42.5}` + "\n" + `{"PartitionKey":"p","RowKey":"1","Total":1.5}` + "\n"
	var packed, parquet bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(lines)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	from := tabletest.New(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	from.Import("Orders", write("orders.jsonl", lines))
	if _, err := transfer.ExportParquet(t.Context(), from.Store, "Orders", store.Query{}, &parquet, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	array := "[" + strings.Replace(strings.TrimSpace(lines), "\n", ",", 1) + "]"
	for name, text := range map[string]string{
		"orders.ndjson": lines, "orders.json": array, "orders.jsonl.gz": packed.String(), "orders.parquet": parquet.String(),
		"orders.csv": "PartitionKey,RowKey,Total@Edm.Double\np,2,42.5\np,1,1.5\n",
		"orders.TSV": "PartitionKey\tRowKey\tTotal@Edm.Double\np\t2\t42.5\np\t1\t1.5\n",
	} {
		t.Run(name, func(t *testing.T) {
			srv := tabletest.New(t)
			srv.Import("Orders", write(name, text))
			got := want(t, srv, http.StatusOK, http.MethodGet, "/Orders()?$select=RowKey,Total", "")
			if got != `{"value":[{"RowKey":"1","Total":1.5},{"RowKey":"2","Total":42.5}]}` {
				t.Errorf("the table has %s", got)
			}
		})
	}
}

// TestImportOrder checks that the Timestamps rise in the order of the file.
func TestImportOrder(t *testing.T) {
	srv := tabletest.New(t)
	file := filepath.Join(t.TempDir(), "orders.csv")
	var text strings.Builder
	text.WriteString("PartitionKey,RowKey\n")
	var keys []edm.Key
	for i := range 1000 {
		k := edm.Key{Partition: string(rune('a' + i*7%26)), Row: fmt.Sprint(i * 37 % 1000)}
		keys = append(keys, k)
		text.WriteString(k.Partition + "," + k.Row + "\n")
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	srv.Import("Orders", file)
	var last edm.Ticks
	for _, k := range keys {
		e, err := srv.Store.Get(t.Context(), "Orders", k)
		if err != nil || e.Timestamp <= last {
			t.Fatalf("%v has the Timestamp %v after %v, %v", k, e.Timestamp, last, err)
		}
		last = e.Timestamp
	}
}

func TestImportFails(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(bad, []byte(`{"PartitionKey":"p","RowKey":"1"}`+"\n"+`{"PartitionKey":"p"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, message := range map[string]string{
		bad: "bad.jsonl:2: ", filepath.Join(dir, "none.csv"): "none.csv: no such file", "orders.txt": "orders.txt: its name does not end in .csv",
	} {
		f := &failing{TB: t}
		srv := tabletest.New(f)
		func() {
			defer func() {
				if recover() != f {
					t.Errorf("Import of %s returns", file)
				}
			}()
			srv.Import("Orders", file)
		}()
		f.end()
		if !strings.Contains(f.said, message) {
			t.Errorf("it says %q, want %q", f.said, message)
		}
	}
}
