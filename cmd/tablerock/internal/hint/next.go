package hint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/wal"
)

// advised is an error of which is known what to do next.
type advised struct {
	error
	next string
}

func (e *advised) Unwrap() error { return e.error }

// With returns err, not nil, with what to do about it; Next returns that.
func With(err error, next string) error { return &advised{err, next} }

// Next says what to do about err, "" where its text does or nobody knows.
func Next(err error) string {
	var known *advised
	full := errors.Is(err, store.ErrNoSpace) || errors.Is(err, syscall.ENOSPC)
	switch {
	case errors.As(err, &known):
		return known.next
	case errors.Is(err, store.ErrTableNotFound):
		return `see "tablerock table list" for those there are, and "tablerock table create" to make one`
	case errors.Is(err, store.ErrPrecondition):
		return `read the entity again with "tablerock entity get" and decide anew`
	case errors.Is(err, store.ErrEntityExists):
		return `use "upsert", or for an import --mode replace or merge, to write over it`
	case errors.Is(err, store.ErrLocked):
		return "stop that process, or wait for it; verbs that only read work beside it"
	case errors.Is(err, store.ErrCorrupt):
		return `"tablerock verify" lists all damage; restore the directory from a checkpoint`
	case errors.Is(err, store.ErrNewerFormat), errors.Is(err, wal.ErrNewerFormat):
		return "use a newer tablerock"
	case errors.Is(err, store.ErrNotDatabase):
		return "give another directory with --data, or empty this one"
	case full && errors.Is(err, store.ErrOutcomeUnknown):
		return "make room on that disk, and look whether the write is there before repeating it"
	case full:
		return "make room on that disk and try again"
	case errors.Is(err, syscall.EROFS):
		return "give another directory with --data, or make this one writable"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns it"
	case errors.Is(err, store.ErrOutcomeUnknown):
		return "look whether the write is there before repeating it"
	}
	return ""
}

// ErrOneAccount says that --data names the directory of one account's database,
// and not the one that such directories are in.
var ErrOneAccount = errors.New("the database of one account")

// Data refuses a place for data that cannot have any.
func Data(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("--data %s: %w: give the directory of the data, or one that is to be made", dir, syscall.ENOTDIR)
	}
	if _, err := os.Stat(filepath.Join(dir, filename.Manifest)); err == nil {
		return fmt.Errorf("--data %s: %w: give the directory that it is in", dir, ErrOneAccount)
	}
	return nil
}

// Strange says that dir, where the directory of an account is about to be made, is
// the place of other things: perhaps another was meant. It is "" if the account or
// another one is there, or nothing but hidden files.
func Strange(dir, account string) string {
	if _, err := os.Stat(filepath.Join(dir, account)); err == nil {
		return ""
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "" // it will be made, or what is wrong with it will show
	}
	strange := false
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), filename.Manifest)); err == nil {
			return ""
		}
		strange = strange || !strings.HasPrefix(e.Name(), ".")
	}
	if !strange {
		return ""
	}
	return fmt.Sprintf("--data %s has other things and no database: making %s beside them", dir, filepath.Join(dir, account))
}
