package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// eachFile calls f with the name of each file in dir.
func eachFile(dir string, f func(name string) error) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return f(name)
	})
}

// fileBytes returns the size of all files in dir, without the holes of sparse files where the
// system tells, and of the sorted tables among them: of all if the store has no files that are
// only tables.
func fileBytes(dir string) (all, tables int64, err error) {
	err = eachFile(dir, func(name string) error {
		info, err := os.Stat(name)
		if err == nil {
			all += allocated(info)
			if ext := filepath.Ext(name); ext == ".sst" || ext == ".ldb" {
				tables += info.Size()
			}
		}
		return err
	})
	if tables == 0 {
		tables = all
	}
	return all, tables, err
}

// copyDir copies the files of a directory, holes as holes, and writes them to stable
// storage.
func copyDir(ctx context.Context, from, to string) error {
	err := eachFile(from, func(name string) error {
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
			return err
		}
		return copyFile(ctx, name, dst)
	})
	if err != nil {
		return err
	}
	return syncFiles(to)
}

// copyIdle copies the files of an open database that nobody writes. Background work may
// still change and remove them: the copies of two files would be of different times, which
// no crash leaves. So it copies until no file changed meanwhile.
func copyIdle(ctx context.Context, from, to string, copyAll func(ctx context.Context, from, to string) error) error {
	const (
		tries = 50
		wait  = 100 * time.Millisecond
	)
	for range tries {
		before, err := stamps(from)
		if err == nil {
			err = errors.Join(os.RemoveAll(to), copyAll(ctx, from, to))
		}
		var after map[string]stamp
		if err == nil {
			after, err = stamps(from)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return err
		case maps.Equal(before, after):
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("copy %s: its files change all the time", from)
}

// stamp identifies a version of a file.
type stamp struct {
	size     int64
	modified time.Time
}

func stamps(dir string) (map[string]stamp, error) {
	all := map[string]stamp{}
	err := eachFile(dir, func(name string) error {
		info, err := os.Stat(name)
		if err == nil {
			all[name] = stamp{info.Size(), info.ModTime()}
		}
		return err
	})
	return all, err
}

func copyFile(ctx context.Context, from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	const chunk = 1 << 20
	buf := make([]byte, chunk)
	size := int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(src, buf)
		if n > 0 && !allZero(buf[:n]) {
			if _, err := dst.WriteAt(buf[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return dst.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}

// allZero compares b with itself one byte further, which is faster than a loop over the bytes.
func allZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

// syncFiles writes the files of a directory to stable storage.
func syncFiles(dir string) error {
	return eachFile(dir, func(name string) error {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
