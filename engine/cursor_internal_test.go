package engine

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestClosedCursorUnpins closes cursors between calls of NextColumns that gather rows of several
// groups, which pins their blocks.
func TestClosedCursorUnpins(t *testing.T) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open("db", Options{FS: vfs.NewMem(), NoSync: true, Testing: TestHooks{Manual: true}})
	must(err)
	must(db.CreateTable(ctx, "Rows"))
	for i := range 10_000 {
		text := edm.Property{Name: "Text", Value: edm.String(fmt.Sprint("text ", i))}
		rest := edm.Property{Name: "Rest", Value: edm.Int32(int32(i % 100))}
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%05d", i)}, Properties: edm.Properties{text, rest}}
		_, err := db.Apply(ctx, "Rows", store.InsertOrReplace(e))
		must(err)
	}
	must(db.Flush(ctx))
	most := 0
	for i := range 10 {
		c := db.Query(ctx, "Rows", store.Query{Filter: filter.MustParse("Rest eq 7")}).(store.ColumnCursor)
		for range i % 5 {
			rows := c.NextColumns()
			if rows == nil {
				break
			}
			_, err := rows.AppendBytes(nil, rows.Properties()-1)
			must(err)
			most = max(most, rows.Len())
		}
		must(c.Close())
	}
	if most < 8 {
		t.Errorf("NextColumns gathers %d rows", most)
	}
	if n := db.cache.Close(); n > 0 {
		t.Errorf("%d blocks are pinned when all cursors are closed", n)
	}
	must(db.Close())
}
