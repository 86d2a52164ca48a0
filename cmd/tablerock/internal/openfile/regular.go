package openfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrIrregular is the error of a pipe, a socket or a device in the place of a regular file.
var ErrIrregular = errors.New("not a regular file")

// Regular returns an error that is ErrIrregular if the file called name is a pipe, a socket or a
// device, because opening and reading it can wait for another program. It follows links. A file
// that os.Open refuses is no error.
func Regular(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	kind := ""
	switch mode := info.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		kind = "pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	case mode&fs.ModeDevice != 0:
		kind = "device"
	default:
		return nil
	}
	return fmt.Errorf("%s is a %s, %w", name, kind, ErrIrregular)
}

// ReadRegular reads a file as os.ReadFile does, unless Regular returns an error.
func ReadRegular(name string) ([]byte, error) {
	if err := Regular(name); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}
