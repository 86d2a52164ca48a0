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

// Read returns the manifest of the database in dir, which the caller owns. The
// error wraps fs.ErrNotExist when there is none and ErrNewerFormat when a later
// version wrote it; damage is a *corrupt.Error.
func Read(fs vfs.FS, dir string) (*Manifest, error) {
	f, err := fs.Open(path.Join(dir, filename.Manifest))
	if err != nil {
		return nil, fmt.Errorf("open manifest: %w", err)
	}
	m, err := read(f)
	if errors.Is(err, corrupt.ErrCorrupt) {
		// What a read got wrong once is not damage.
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

func read(f vfs.File) (*Manifest, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(size, headLen))
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

// Write replaces the manifest of the database in dir: a temporary file is
// written and synced, takes the manifest's name, and the directory is synced.
// The order of m's logs and files does not matter; m is not changed. It must
// keep the rules that its fields state, else nothing is written.
//
// After an error of the file system it is unknown which of the two manifests
// the next Read finds, now or after a crash; it is one of them, whole.
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
		return nil, fmt.Errorf("manifest of %d bytes, at most %d can be", n, maxBytes)
	}
	return appendManifest(make([]byte, 0, n), c), nil
}
