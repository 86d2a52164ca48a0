package visibility

import (
	"fmt"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/fingerprint"
)

// Counts has the entries of a flush or a compaction by decision.
type Counts [decisions]fingerprint.Fingerprint

// Kept returns the entries that are kept.
func (c *Counts) Kept() fingerprint.Fingerprint { return c[Keep].Plus(c[KeepZeroSeq]) }

// Check returns an error unless the entries are those of in, and as many were written as are
// kept.
func (c *Counts) Check(in fingerprint.Fingerprint, written uint64) error {
	sum := c.Kept()
	for d := DropShadowed; d < decisions; d++ {
		sum = sum.Plus(c[d])
	}
	if sum == in && c.Kept().Entries == written {
		return nil
	}
	return fmt.Errorf("%d entries (sum %x) went in, %d (sum %x) came out, %d of them into files; "+
		"dropped: %d shadowed, %d tombstones, %d of dropped tables",
		in.Entries, in.Sum, sum.Entries, sum.Sum, written, c[DropShadowed].Entries, c[DropTombstone].Entries, c[DropTable].Entries)
}
