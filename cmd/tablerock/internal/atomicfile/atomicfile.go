// Package atomicfile writes files that appear when they are complete.
package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
	"github.com/tablerock-db/tablerock/vfs"
)

// File is a new file that replaces any of its name when it is complete and durable.
// Until then its contents are in a temporary file of the same directory. Anything but a
// regular file, such as a pipe, is written directly, and so is standard output. Another link
// stays, and its target is replaced.
type File struct {
	file   *os.File
	name   string
	target string // of name, which is a link, or name itself
	temp   bool
	steps  commitSteps
}

// commitSteps are the system calls of Close. Tests make them fail.
type commitSteps struct {
	sync    func(*os.File) error
	rename  func(from, to string) error
	syncDir func(dir string) error
}

var systemSteps = commitSteps{
	sync:    (*os.File).Sync,
	rename:  os.Rename,
	syncDir: func(dir string) error { return vfs.OS().SyncDir(filepath.ToSlash(dir)) },
}

// Create starts to write the file called name. Call Close. It fails when ctx ends while it waits for
// the reader of a named pipe.
func Create(ctx context.Context, name string) (*File, error) {
	info, err := os.Stat(name)
	if IsOutput(name) {
		return &File{file: os.Stdout, name: name}, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		f, err := openfile.Open(ctx, name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{file: f, name: name}, nil
	}
	target, err := targetOf(name)
	if err != nil {
		return nil, ErrorOf(name, err)
	}
	partial := partialOf(target)
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, ErrorOf(name, err)
	}
	mode := fs.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm() // nobody else can read what only the owner could
	}
	// With O_EXCL, a file or link that somebody else has made since fails the call
	// instead of being overwritten or followed.
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, ErrorOf(name, err)
	}
	return &File{file: f, name: name, target: target, temp: true, steps: systemSteps}, nil
}

// partialOf returns the name of the temporary file of target. A long name is cut before a
// character, so that the system allows it too.
func partialOf(target string) string {
	const most = 255 - len(".") - len(".partial") // of the bytes of a name
	base := filepath.Base(target)
	for len(base) > most {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	return filepath.Join(filepath.Dir(target), "."+base+".partial")
}

// IsOutput reports whether name is a link to standard output, as /dev/stdout is. A file there
// is neither replaced nor cut, because a shell opens it to append, or for several commands.
func IsOutput(name string) bool {
	link, err := os.Lstat(name)
	if err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	there, err := os.Stat(name)
	out, outErr := os.Stdout.Stat()
	return err == nil && outErr == nil && os.SameFile(there, out)
}

// targetOf returns the file to which name is a link, or name if it is none or its target is
// missing.
func targetOf(name string) (string, error) {
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name, nil
	}
	// The system refuses links of others in shared directories.
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// ErrorOf returns err as an error of the file called name instead of the temporary file,
// which the user does not know.
func ErrorOf(name string, err error) error {
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
func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil {
		err = ErrorOf(f.name, err)
	}
	return n, err
}

// own reports whether the temporary file is still that of f. Create of another process removes it.
func (f *File) own() bool {
	mine, err := f.file.Stat()
	if err != nil {
		return true // Close gets an error too
	}
	there, err := os.Lstat(f.file.Name())
	return err == nil && os.SameFile(mine, there)
}

// Close closes the file. Pass the error of the work that wrote it: if that is nil, Close
// syncs the file, renames it, and syncs the directory; otherwise, or if that fails, it
// removes what was written. If another process has begun to write the file, Close fails and leaves
// what that writes. It returns nil only if the file is complete and durable. If
// only the sync of the directory failed, the file is complete and may not be durable.
func (f *File) Close(err error) error {
	if f.temp && err == nil {
		if serr := f.steps.sync(f.file); serr != nil {
			err = ErrorOf(f.name, serr)
		}
	}
	own := f.temp && f.own()
	if f.temp && !own && err == nil {
		err = fmt.Errorf("write %s: another process has begun to write it", f.name)
	}
	if cerr := f.file.Close(); cerr != nil {
		err = errors.Join(err, ErrorOf(f.name, cerr))
	}
	switch {
	case !own:
		return err
	case err != nil:
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	if err := f.steps.rename(f.file.Name(), f.target); err != nil {
		return ErrorOf(f.name, errors.Join(err, os.Remove(f.file.Name())))
	}
	if err := f.steps.syncDir(filepath.Dir(f.target)); err != nil {
		return ErrorOf(f.name, err)
	}
	return nil
}
