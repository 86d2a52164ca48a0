package manifest

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// Read returns the manifest of the database in dir. The caller owns it. The error
// wraps fs.ErrNotExist if there is none and ErrNewerFormat if a later version wrote
// it; damage is a *corrupt.Error.
func Read(fs vfs.FS, dir string) (*Manifest, error) {
	f, err := fs.Open(path.Join(dir, filename.Manifest))
	if err != nil {
		return nil, fmt.Errorf("open manifest: %w", err)
	}
	m, err := read(f)
	if errors.Is(err, corrupt.ErrCorrupt) {
		// One wrong read is not damage of the file.
		m, err = read(f)
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}

// Around returns the directory of a database that dir is inside of, "" if there is none. A file
// that only has the name of a manifest does not count: other programs use it too.
func Around(fs vfs.FS, dir string) string {
	// Open follows the links in the path of the directory. The loop ends at "..", which is not inside path.Dir("..").
	for dir = path.Clean(dir); path.Base(dir) != ".." && dir != path.Dir(dir); {
		dir = path.Dir(dir)
		if _, err := Read(fs, dir); err == nil {
			return dir
		}
	}
	return ""
}

func read(f vfs.File) (*Manifest, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(size, headLen2))
	if err := readAt(f, head, 0); err != nil {
		return nil, err
	}
	if err := checkHead(head, size); err != nil {
		return nil, err
	}
	src := make([]byte, size)
	if err := readAt(f, src, 0); err != nil {
		return nil, err
	}
	return decode(src)
}

func readAt(f vfs.File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) && (err == nil || errors.Is(err, io.EOF)) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Write replaces the manifest of the database in dir: it writes and syncs a temporary
// file, renames it, and syncs the directory. The logs and files of m may be in any
// order; Write does not change m. If m violates an invariant, Write writes nothing.
//
// After an error of the file system, the next Read finds either the old or the new
// manifest, now and after a crash.
func Write(fs vfs.FS, dir string, m *Manifest) error {
	b, err := encode(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	temp := path.Join(dir, filename.ManifestTemp)
	if err := fs.Remove(temp); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("remove old temporary manifest: %w", err)
	}
	f, err := fs.Create(temp)
	if err != nil {
		return fmt.Errorf("create manifest: %w", err)
	}
	if err := writeAll(f, b); err != nil {
		return fmt.Errorf("write manifest: %w", errors.Join(err, f.Close()))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close manifest: %w", err)
	}
	if err := fs.Rename(temp, path.Join(dir, filename.Manifest)); err != nil {
		return fmt.Errorf("rename manifest: %w", err)
	}
	if err := fs.SyncDir(dir); err != nil {
		return fmt.Errorf("sync directory of manifest: %w", err)
	}
	return nil
}

func writeAll(f vfs.File, b []byte) error {
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Sync()
}

// encode returns the one encoding of m.
func encode(m *Manifest) ([]byte, error) {
	if m.Version > version {
		return nil, fmt.Errorf("%w: version %d, this build knows %d", ErrNewerFormat, m.Version, version)
	}
	c := m.Clone()
	c.Sort()
	if err := c.check(); err != nil {
		return nil, err
	}
	n := encodedLen(c)
	if n > maxBytes {
		return nil, fmt.Errorf("manifest of %d bytes, at most %d allowed", n, maxBytes)
	}
	return appendManifest(make([]byte, 0, n), c), nil
}
