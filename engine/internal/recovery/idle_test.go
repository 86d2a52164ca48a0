package recovery

import (
	"io/fs"
	"testing"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// strictFS is a file system on which files cannot be opened for writing, or on which a file that
// is open for reading only cannot be synced, as on Windows.
type strictFS struct {
	vfs.FS
	readOnly bool
}

type strictFile struct{ vfs.File }

func (s strictFS) OpenReadWrite(name string) (vfs.File, error) {
	if s.readOnly {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.FS.OpenReadWrite(name)
}

func (s strictFS) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || s.readOnly {
		return f, err
	}
	return strictFile{f}, nil
}

func (strictFile) Sync() error { return &fs.PathError{Op: "sync", Err: fs.ErrPermission} }

// TestReadIdleSyncs reads an idle log on a read-only file system, and on one that syncs only files
// that are open for writing.
func TestReadIdleSyncs(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		disk, _ := three(t)
		l, err := Read(strictFS{disk, readOnly}, ".", &manifest.Manifest{DBID: dbid, Logs: []manifest.Log{{Number: 2}}}, Idle)
		if err != nil {
			t.Errorf("read-only %v: %v", readOnly, err)
			continue
		}
		if l.LastSeq != 30 {
			t.Errorf("read-only %v: last sequence %d, want 30", readOnly, l.LastSeq)
		}
		l.Free()
	}
}
