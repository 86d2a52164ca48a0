//go:build !linux

package bench

import "io/fs"

func allocated(info fs.FileInfo) int64 { return info.Size() }
