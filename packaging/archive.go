package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// entry is a file of a package.
type entry struct {
	name string // in the package, with slashes
	path string
	mode fs.FileMode
}

// entries returns the files of an archive: the program, its pages, and the texts of the
// project.
func (r *release) entries(b built) ([]entry, error) {
	list := []entry{{b.program(), b.path, 0o755}}
	list = append(list, entry{"LICENSE", filepath.Join(r.root, "LICENSE"), 0o644})
	for _, name := range linked {
		list = append(list, entry{name, filepath.Join(b.docs, name), 0o644})
	}
	for _, folder := range []string{"man", "completions"} {
		files, err := os.ReadDir(filepath.Join(b.docs, folder))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			list = append(list, entry{path.Join(folder, f.Name()), filepath.Join(b.docs, folder, f.Name()), 0o644})
		}
	}
	return list, nil
}

func (r *release) writeTar(b built, f *os.File) error {
	list, err := r.entries(b)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, e := range list {
		if err := r.addToTar(w, e); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close())
}

func (r *release) addToTar(w *tar.Writer, e entry) error {
	text, err := os.ReadFile(e.path)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(text)), ModTime: r.time, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func (r *release) writeZip(b built, f *os.File) error {
	list, err := r.entries(b)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	for _, e := range list {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(e.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if err := copyFile(to, e.path); err != nil {
			return err
		}
	}
	return w.Close()
}

func copyFile(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
