package backup_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
)

// TestArchive archives a chunk twice, and another one of its name.
func TestArchive(t *testing.T) {
	target := backuptest.NewTarget(1, 0)
	a := backup.NewArchive(target, "acct")
	const name = "00000000/db/1-2.log"
	chunk := bytes.Repeat([]byte("chunk"), 1<<19)
	for range 2 {
		if err := a.Put(t.Context(), name, bytes.NewReader(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	for what, other := range map[string][]byte{
		"shorter": chunk[:1<<20], "longer": append(bytes.Clone(chunk), 0), "other bytes": append(bytes.Clone(chunk[1:]), 1), "empty": nil,
	} {
		if err := a.Put(t.Context(), name, bytes.NewReader(other)); !errors.Is(err, backup.ErrOtherHistory) {
			t.Errorf("%s: %v", what, err)
		}
	}
	objects, err := target.List(t.Context(), "")
	if err != nil || len(objects) != 1 || objects[0].Name != "acct/archive/"+name || objects[0].Size != int64(len(chunk)) {
		t.Errorf("objects %v, %v", objects, err)
	}
}
