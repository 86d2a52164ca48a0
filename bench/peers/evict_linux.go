package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxResident is the share of the pages of a directory that may stay after evict.
const maxResident = 0.01

// evict removes the files of a directory from the page cache. It returns an error if
// pages stay, as those of files that a process maps or that are not on stable storage.
func evict(dir string) error {
	resident, pages := 0, 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = f.Sync()
		if err == nil {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
		if err == nil {
			var in, of int
			in, of, err = residentPages(f)
			resident, pages = resident+in, pages+of
		}
		return errors.Join(err, f.Close())
	})
	if err == nil && float64(resident) > maxResident*float64(pages)+1 {
		err = fmt.Errorf("%d of %d pages of %s stay in the page cache", resident, pages, dir)
	}
	return err
}

// residentPages returns how many pages of a file are in the page cache, and its pages.
func residentPages(f *os.File) (resident, pages int, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	page := os.Getpagesize()
	in := make([]byte, (len(mapped)+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(mapped))),
		uintptr(len(mapped)), uintptr(unsafe.Pointer(unsafe.SliceData(in))))
	if errno != 0 {
		err = fmt.Errorf("mincore of %s: %w", f.Name(), errno)
	}
	for _, b := range in {
		resident += int(b & 1)
	}
	return resident, len(in), errors.Join(err, unix.Munmap(mapped))
}
