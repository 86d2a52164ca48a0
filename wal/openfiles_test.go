package wal

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// TestReuseRenamesClosedFile reuses a file on a file system that, as Windows does, refuses to
// rename an open file.
func TestReuseRenamesClosedFile(t *testing.T) {
	mem := newMem(t)
	if err := prepare(mem, "db/spare", 40_000); err != nil {
		t.Fatal(err)
	}
	fsys := &sharingFS{FS: mem, open: map[string]int{}}
	s, err := create(fsys, testName, testHeader(), make([]byte, 40_000), CreateOptions{Prepared: "db/spare"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := appendRecord(s, Record{FirstSeq: 100, Count: 1}, []byte("entry")); !ok {
		t.Fatal("the record does not fit")
	}
	if err := errors.Join(s.Sync(s.Tail()), s.Close()); err != nil {
		t.Fatal(err)
	}
	if len(fsys.open) != 0 {
		t.Errorf("files %v are open after Close", fsys.open)
	}
	if r := replayFS(mem, testName, testOptions(), 1<<16); r.err != nil || len(r.records) != 1 {
		t.Errorf("replay: %d records, %v", len(r.records), r.err)
	}
}

// sharingFS does not rename or remove open files.
type sharingFS struct {
	vfs.FS
	open map[string]int
}

type sharingFile struct {
	vfs.File
	fs   *sharingFS
	name string
}

func (s *sharingFS) opened(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	s.open[name]++
	return &sharingFile{f, s, name}, nil
}

func (s *sharingFS) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	return s.opened(name, f, err)
}

func (s *sharingFS) OpenReadWrite(name string) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(name)
	return s.opened(name, f, err)
}

func (s *sharingFS) Rename(oldname, newname string) error {
	if s.open[oldname]+s.open[newname] > 0 {
		return &fs.PathError{Op: "rename", Path: oldname, Err: errors.New("sharing violation")}
	}
	return s.FS.Rename(oldname, newname)
}

func (f *sharingFile) Close() error {
	if f.fs.open[f.name]--; f.fs.open[f.name] <= 0 {
		delete(f.fs.open, f.name)
	}
	return f.File.Close()
}
