package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

const (
	one = `{"PartitionKey":"p","RowKey":"1","a":5,"b":"x"}` + "\n"
	two = `{"PartitionKey":"p","RowKey":"2","Timestamp":"2020-01-01T00:00:00Z","d":1.0}` + "\n"
)

// TestCompare compares files with differences, and with differences that compare
// ignores.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		same                bool
	}{
		{"the same", one + two, one + two, true},
		{"order of lines", one + two, two + one, true},
		{"order of properties", one, `{"b":"x","a":5,"RowKey":"1","PartitionKey":"p"}` + "\n", true},
		{"Timestamp", two, strings.Replace(two, "2020", "2021", 1), true},
		{"the last line of a key counts", two + strings.Replace(one, "5", "6", 1) + one, one + two, true},
		{"value", one, strings.Replace(one, "5", "6", 1), false},
		{"type", one, strings.Replace(one, `"a":5`, `"a@odata.type":"Edm.Int64","a":"5"`, 1), false},
		{"minus zero", strings.Replace(two, "1.0", "0.0", 1), strings.Replace(two, "1.0", "-0.0", 1), false},
		{"property missing", one, strings.Replace(one, `,"b":"x"`, "", 1), false},
		{"entity missing", one + two, one, false},
		{"entity more", one, one + two, false},
		{"entity twice", one, one + one, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			options := func(name, text string) transfer.ReadOptions {
				t.Helper()
				name = filepath.Join(dir, name)
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return transfer.ReadOptions{Name: name, Format: transfer.JSONL}
			}
			var out strings.Builder
			same, err := compare(&out, options("first", c.first), options("second", c.second))
			if err != nil || same != c.same {
				t.Errorf("got %t, %v, want %t; printed %q", same, err, c.same, out.String())
			}
			if strings.HasPrefix(out.String(), "equal: ") != c.same {
				t.Errorf("printed %q, want it to say that they are equal: %t", out.String(), c.same)
			}
		})
	}
}

// TestFormats compares files of all formats, which their names tell.
func TestFormats(t *testing.T) {
	s := storetest.NewMap(nil)
	var parquet bytes.Buffer
	err := s.CreateTable(t.Context(), "Things")
	if err == nil {
		_, err = s.Apply(t.Context(), "Things", store.Insert(edm.Entity{
			Key:        edm.Key{Partition: "p", Row: "1"},
			Properties: edm.Properties{{Name: "a", Value: edm.Int32(5)}, {Name: "b", Value: edm.String("x")}},
		}))
	}
	if err == nil {
		_, err = transfer.ExportParquet(t.Context(), s, "Things", store.Query{}, &parquet, transfer.ExportOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{
		"x.jsonl":   one,
		"x.json":    "[" + one + "]",
		"x.csv":     "PartitionKey,RowKey,a@Edm.Int32,b\np,1,5,x\n",
		"x.tsv":     "PartitionKey\tRowKey\ta@Edm.Int32\tb\np\t1\t5\tx\n",
		"x.txt":     "PartitionKey,RowKey,a@Edm.Int32,b\np,1,5,x\n",
		"x.parquet": parquet.String(),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name := range files {
		var out strings.Builder
		same, err := compare(&out, optionsOf(filepath.Join(dir, "x.jsonl")), optionsOf(filepath.Join(dir, name)))
		if err != nil || !same {
			t.Errorf("%s: got %t, error %v; printed %q", name, same, err, out.String())
		}
	}
}
