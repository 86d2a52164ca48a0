package engine_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// TestEntitiesWithoutMeta counts the entities of a database with metadata of the account, which is
// none of them.
func TestEntitiesWithoutMeta(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 7, 10)
	for _, meta := range [][]byte{[]byte("meta"), nil} {
		check(t, "SetAccountMeta", db.SetAccountMeta(t.Context(), meta))
		check(t, "Compact", db.Compact(t.Context()))
		for range 2 {
			if s, err := db.Stats(); err != nil || s.Entities != 7 {
				t.Errorf("with metadata %q: %d entities, %v, want 7", meta, s.Entities, err)
			}
			check(t, "Close", db.Close())
			db = mustOpen(t, "db", manual(disk))
		}
	}
	check(t, "Close", db.Close())
}
