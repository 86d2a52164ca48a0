package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// atomicFile is a file that takes its name once it is whole. What is no regular
// file, such as a pipe, is written in place.
type atomicFile struct {
	file *os.File
	name string
	temp bool
}

// createAtomic begins to write what is to be the file called name. Its error is of that
// name.
func createAtomic(name string) (*atomicFile, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &atomicFile{file: f, name: name}, nil
	}
	// The file in the making has a name of its own, which nobody asked about.
	partial := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".partial")
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, named(name, err)
	}
	// Nothing that is there by now is followed or written over.
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, named(name, err)
	}
	return &atomicFile{file: f, name: name, temp: true}, nil
}

// named returns err, which a file of another name met, as one of the file name.
func named(name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("write %s: %w", name, err)
}

// Write implements io.Writer.
func (f *atomicFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil {
		err = named(f.name, err)
	}
	return n, err
}

// Close ends the file after work that gave err: it takes its name if that is nil
// and nothing else fails, and is gone otherwise.
func (f *atomicFile) Close(err error) error {
	if cerr := f.file.Close(); cerr != nil {
		err = errors.Join(err, named(f.name, cerr))
	}
	switch {
	case !f.temp:
		return err
	case err != nil:
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	if err := os.Rename(f.file.Name(), f.name); err != nil {
		return named(f.name, errors.Join(err, os.Remove(f.file.Name())))
	}
	return nil
}
