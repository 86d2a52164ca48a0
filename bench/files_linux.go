package bench

import (
	"io/fs"
	"syscall"
)

// allocated returns the bytes that a file takes on the disk.
func allocated(info fs.FileInfo) int64 {
	const unit = 512 // of st_blocks
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * unit
	}
	return info.Size()
}
