// Package filesize says where the files of a run end: by their bytes, by their share of the run,
// and by the older files that they overlap.
//
// A Target does not change. A Limit belongs to the goroutine that writes the files of one run.
package filesize

const (
	maxMin      = 4 << 20
	maxMinShare = 256 << 10
	// Files of a run, unless they would be too small.
	filesPerRun = 10
)

// Target is the target size of a file in bytes, at least 1. A file may get a quarter larger, so
// that it ends with a partition.
type Target int64

// Min is the least size of a file that is cut at the end of a table, and of a file that is moved to
// the bottom without a rewrite.
func (t Target) Min() int64 { return min(maxMin, int64(t)/8) }

// MinShare is the least size of a file that is cut because it is a large share of its run.
func (t Target) MinShare() int64 { return min(maxMinShare, int64(t)/8) }

// Share is the target size of a file, of at least least bytes, of a run of total bytes.
func (t Target) Share(total, least int64) int64 {
	return min(int64(t), max(least, total/filesPerRun))
}
