package engine

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestBehind writes while a flush waits for its sync. Once two segments wait, a job of the tree
// hears that writers will stall soon, and after a Flush that they will not.
func TestBehind(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db, err := Open("db", Options{FS: fsys, SegmentBytes: 64 << 10})
	must(t, "Open", err)
	must(t, "CreateTable", db.CreateTable(t.Context(), fullTable))
	synced := make(chan struct{})
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, ".sst") {
			<-synced
		}
		return nil
	})
	behind := db.treeOptions().Behind
	for n := 0; len(db.state.Load().Mems) < 3; n++ {
		if behind() {
			t.Fatalf("behind with %d segments", len(db.state.Load().Mems))
		}
		value := edm.Binary(make([]byte, 1000))
		_, err := db.Apply(t.Context(), fullTable, store.Insert(edm.Entity{Key: fullKey(n), Properties: edm.Properties{{Name: "B", Value: value}}}))
		must(t, "Apply", err)
	}
	if !behind() {
		t.Error("not behind, although two segments wait for their flush")
	}
	close(synced)
	must(t, "Flush", db.Flush(t.Context()))
	if behind() {
		t.Error("behind after a Flush")
	}
	must(t, "Close", db.Close())
}
