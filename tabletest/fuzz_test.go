package tabletest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/tabletest"
)

// FuzzReset uses a server of the F in the fuzz target, where the methods of F panic.
func FuzzReset(f *testing.F) {
	for _, row := range []string{"", "a", "é", "/"} {
		f.Add(row)
	}
	file := filepath.Join(f.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, []byte(`{"PartitionKey":"p","RowKey":"imported"}`), 0o600); err != nil {
		f.Fatal(err)
	}
	srv := tabletest.New(f)
	empty, other := srv.Snapshot(), tabletest.New(f).Snapshot()
	f.Fuzz(func(t *testing.T, row string) {
		srv.Reset(empty)
		srv.Import("Rows", file)
		key := edm.Key{Partition: "q", Row: row}
		// Whether the row can be stored does not depend on the inputs before it.
		_, err := srv.Store.Apply(t.Context(), "Rows", store.Insert(edm.Entity{Key: key}))
		if legal := edm.CheckKey(key) == nil; legal != (err == nil) {
			t.Errorf("insert %q: %v", row, err)
		}
		defer func() {
			if r := recover(); !strings.Contains(fmt.Sprint(r), "snapshot of another server") {
				t.Errorf("Reset to a snapshot of another server panics with %v", r)
			}
		}()
		srv.Reset(other)
	})
}
