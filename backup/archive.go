package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/tablerock-db/tablerock/engine"
)

// ErrOtherHistory is wrapped by the error for a chunk of a database that differs from the
// archived chunk of the same name: two copies of a database were archived in one place.
var ErrOtherHistory = errors.New("the archive has the history of another copy of this database")

// NewArchive returns the archive of an account in a Target, for engine.Options.Archive.
func NewArchive(t Target, account string) engine.Archive {
	return &targetArchive{t, path.Join(account, archiveDir)}
}

type targetArchive struct {
	t   Target
	dir string
}

// Put implements engine.Archive. A chunk is archived again if a crash, or an error after
// the effect, hid that it was archived.
func (a *targetArchive) Put(ctx context.Context, name string, chunk io.Reader) error {
	name = path.Join(a.dir, name)
	found, err := a.t.List(ctx, name)
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Name != name {
		return a.t.PutIfAbsent(ctx, name, chunk)
	}
	object, err := a.t.Get(ctx, name)
	if err != nil {
		return err
	}
	same, err := sameBytes(object, chunk)
	if err = errors.Join(err, object.Close()); err == nil && !same {
		err = fmt.Errorf("%w: %s; archive this one in another directory", ErrOtherHistory, name)
	}
	return err
}

// sameBytes reports whether two readers have the same bytes to their ends.
func sameBytes(a, b io.Reader) (bool, error) {
	p, q := make([]byte, copyBytes), make([]byte, copyBytes)
	for {
		n, errA := io.ReadFull(a, p)
		m, errB := io.ReadFull(b, q)
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return (errA != nil) == (errB != nil), nil
		}
	}
}
