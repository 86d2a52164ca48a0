// Package cgroup reads the limit of memory that Linux sets for the process by its control groups, as
// containers and MemoryMax of systemd do.
package cgroup

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxFile limits what is read of a file. Those of the kernel are shorter.
const maxFile = 64 << 10

// MemoryLimit returns the limit in bytes, the smallest of the group of the process and those around
// it, in either version of control groups. It is 0 if there is none or it cannot be read. root is the root
// of the file system, os.DirFS("/").
func MemoryLimit(root fs.FS) int64 {
	list, err := read(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	var limit int64
	for line := range strings.Lines(list) {
		// A line is ID:CONTROLLERS:PATH. Version 2 has no controllers.
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		base, file := "sys/fs/cgroup", "memory.max"
		switch {
		case !ok:
			continue
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		// In a container the path can be that of the host, which does not exist there: base is the
		// group of the container then.
		for dir := path.Join(base, path.Clean("/"+group)); ; dir = path.Dir(dir) {
			if n := limitOf(root, path.Join(dir, file)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == base {
				break
			}
		}
	}
	return limit
}

// unlimited is less than what version 1 has for no limit.
const unlimited = 1 << 60

// limitOf returns the limit in a file, 0 if there is none.
func limitOf(root fs.FS, name string) int64 {
	text, err := read(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // version 2 has max for no limit
	if err != nil || n >= unlimited {
		return 0
	}
	return n
}

func read(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(b), err
}
