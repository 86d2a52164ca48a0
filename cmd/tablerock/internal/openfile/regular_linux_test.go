package openfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadRegular reads files of all kinds, each by a link to it, too. Without the refusal it
// waits for a writer of the pipe.
func TestReadRegular(t *testing.T) {
	for _, c := range []struct {
		what   string
		create func(name string) error
		want   string // of the error, "" if the file can be read
	}{
		{"a file", func(name string) error { return os.WriteFile(name, []byte("text"), 0o600) }, ""},
		{"no file", func(string) error { return nil }, "no such file or directory"},
		{"a directory", func(name string) error { return os.Mkdir(name, 0o700) }, "is a directory"},
		{"a pipe", func(name string) error { return syscall.Mkfifo(name, 0o600) }, "is a pipe, not a regular file"},
		{"a device", func(name string) error { return os.Symlink("/dev/zero", name) }, "is a device, not a regular file"},
		{"a socket", func(name string) error {
			l, err := net.Listen("unix", name)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		}, "is a socket, not a regular file"},
	} {
		dir := t.TempDir()
		name, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
		if err := errors.Join(c.create(name), os.Symlink(name, link)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{name, link} {
			text, err := ReadRegular(name)
			switch {
			case c.want == "":
				if string(text) != "text" || err != nil {
					t.Errorf("%s: %q, error %v; want its text", c.what, text, err)
				}
			case err == nil || !strings.Contains(err.Error(), name+" "+c.want) && !strings.Contains(err.Error(), name+": "+c.want):
				t.Errorf("%s: error %v, want that %s %s", c.what, err, name, c.want)
			case errors.Is(err, ErrIrregular) != strings.HasSuffix(c.want, ErrIrregular.Error()):
				t.Errorf("%s: the error %v is ErrIrregular: %v", c.what, err, errors.Is(err, ErrIrregular))
			}
		}
	}
}
