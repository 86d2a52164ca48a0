package vfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// SyncParents makes the name of a directory and of all its parents durable. Those that exist may
// not be durable either: a process that was killed may have made them.
func SyncParents(fsys FS, dir string) error {
	for dir = path.Clean(dir); dir != path.Dir(dir); {
		dir = path.Dir(dir)
		// A parent that this user may not read is not one that this program made.
		if err := fsys.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// ReadFile returns the contents of a file. If the file has more than limit bytes, it
// returns EFBIG and allocates nothing.
func ReadFile(fsys FS, name string, limit int64) (data []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, memError("read", name, syscall.EFBIG)
	}
	data = make([]byte, size)
	if n, err := f.ReadAt(data, 0); err != nil && (err != io.EOF || n < len(data)) {
		return nil, err
	}
	return data, nil
}

// Dump describes the tree below dir for comparisons in tests, with one line for each
// path in order: the path, then "dir", "other", or the size and a prefix of the SHA-256
// of the file. Equal trees give equal dumps on any FS.
func Dump(fsys FS, dir string) (string, error) {
	var b strings.Builder
	if err := dump(&b, fsys, dir, ""); err != nil {
		return "", err
	}
	return b.String(), nil
}

func dump(b *strings.Builder, fsys FS, dir, shown string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		full, short := path.Join(dir, name), path.Join(shown, name)
		info, err := fsys.Stat(full)
		switch {
		case err != nil:
			return err
		case info.Dir:
			fmt.Fprintf(b, "%q dir\n", short)
			err = dump(b, fsys, full, short)
		case !info.Regular:
			fmt.Fprintf(b, "%q other\n", short)
		default:
			var data []byte
			data, err = ReadFile(fsys, full, info.Size)
			sum := sha256.Sum256(data)
			fmt.Fprintf(b, "%q %d %x\n", short, len(data), sum[:8])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
