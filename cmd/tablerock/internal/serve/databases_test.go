package serve

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestReserveOfMissingDirectory asks for the reserve of all accounts on a small volume before the data directory exists, as the
// first account does. It must be that of the volume, as for the accounts after it.
func TestReserveOfMissingDirectory(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetCapacity(64 << 20)
	missing := errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "space" && strings.Contains(op.Name, "data") {
			return &errorfs.Fault{Err: fs.ErrNotExist}
		}
		return nil
	})
	for _, dir := range []string{".", "data", "sub/data/deep", "/volume/data"} {
		if got := reserve(missing, dir); got != 4<<20 {
			t.Errorf("%s: %d bytes, want %d", dir, got, 4<<20)
		}
	}
	if got := reserve(vfs.NewMem(), "data"); got != maxReserve {
		t.Errorf("without a limit: %d bytes, want %d", got, int64(maxReserve))
	}
}
