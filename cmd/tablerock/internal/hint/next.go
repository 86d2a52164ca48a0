package hint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
	"github.com/tablerock-db/tablerock/vfs"
)

// advised is an error with its next step.
type advised struct {
	error
	next string
}

func (e *advised) Unwrap() error { return e.error }

// With returns err, not nil, with its next step for Next.
func With(err error, next string) error { return &advised{err, next} }

// Input returns err, with which package os could not read a file that a flag names, with the flag
// and the next step.
func Input(flag string, err error) error {
	err = fmt.Errorf("%s: %w", flag, err)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) {
		return With(err, "give an existing file")
	}
	return err
}

// Interrupted returns err, with what an interrupted command leaves for Next if err is
// context.Canceled.
func Interrupted(err error, state string) error {
	if errors.Is(err, context.Canceled) {
		return With(err, state)
	}
	return err
}

// Local returns err, of a command that works through the server that has its data directory, with the
// next step if that server does not answer any more.
func Local(err error) error {
	var answer *remote.Error
	if errors.Is(err, store.ErrUnavailable) && !errors.As(err, &answer) {
		return With(err, "repeat the command: when that server has ended, it works on the directory itself")
	}
	return err
}

// Clear returns err, which "tablerock clear" returns, with the next step on a full disk. The
// reserve of a database lasts for the log of a part of the deletes, and a drop of the table
// needs a few bytes.
func Clear(err error) error {
	if errors.Is(err, store.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
		return With(err, `repeat it until the table is empty, or use "tablerock table delete", which frees the space at once; then create the table again`)
	}
	return err
}

// lookFirst is the next step after a write whose outcome is not known.
const lookFirst = "check whether the write is stored before you repeat it"

// Repeatable returns err, which says that the command goes on when it is repeated. Next does not
// contradict that.
func Repeatable(err error) error {
	if Next(err) == lookFirst {
		return With(err, "")
	}
	return err
}

// Next returns the next step after err, or "" if it is not known or err itself says it.
func Next(err error) string {
	var known *advised
	var answer *remote.Error
	var wrong *remote.AddressError
	var unsigned *remote.IdentityError
	var option *transfer.OptionError
	if errors.Is(err, context.Canceled) && !errors.As(err, &known) {
		return ""
	}
	full := errors.Is(err, store.ErrNoSpace) || errors.Is(err, syscall.ENOSPC)
	switch {
	case errors.As(err, &known):
		return known.next
	case errors.As(err, &wrong) && strings.Contains(wrong.What, "unknown authority"):
		return `trust the certificate on this machine or, except on macOS and Windows, name its file by the variable SSL_CERT_FILE; ` +
			`that of "tablerock serve --self-signed" is self-signed.crt in its data directory`
	case errors.As(err, &wrong):
		return ""
	case errors.As(err, &unsigned):
		return `run "az login", or give --account-key or --sas`
	case errors.As(err, &option) && option.Option == "Format": // what the import adds names the flag
		return ""
	case errors.As(err, &option):
		return "the flag is --" + map[string]string{"Delimiter": "delimiter", "PartitionKey": "partition-key", "RowKey": "row-key"}[option.Option]
	case errors.As(err, &answer) && errors.Is(err, fs.ErrPermission) && strings.HasPrefix(answer.Code, "Authorization"):
		return "the SAS or the role does not allow this: give another one, or the key of the account"
	case errors.As(err, &answer) && errors.Is(err, fs.ErrPermission):
		return "check the account, its key or the SAS, and the clock of this machine"
	case errors.As(err, &answer) && (errors.Is(err, store.ErrUnavailable) || isPassing(answer)):
		return "try again later"
	case errors.As(err, &answer) && answer.Code == "" && answer.Status < 500 && answer.Status != http.StatusRequestTimeout:
		return "check that this is the address of a Table server and not of another service"
	case errors.Is(err, store.ErrUnavailable):
		return "check that the server runs at this address and try again"
	case errors.Is(err, store.ErrTableNotFound):
		return `see "tablerock table list" for the tables, and "tablerock table create" to create one`
	case errors.Is(err, store.ErrPrecondition):
		return `read the entity again with "tablerock entity get" before you repeat the change`
	case errors.Is(err, store.ErrEntityExists):
		return `use "tablerock entity upsert" to overwrite it`
	case errors.Is(err, store.ErrLocked):
		return "stop that process, or wait for it; commands that only read work beside it"
	case errors.Is(err, store.ErrCorrupt):
		var damage *store.CorruptError
		if errors.As(err, &damage) {
			return `"tablerock verify" lists all damage; ` + Damaged(damage.File)
		}
		return `"tablerock verify" lists all damage; ` + Damaged("")
	case errors.Is(err, store.ErrNewerFormat):
		return "use a newer tablerock"
	case errors.Is(err, store.ErrNotDatabase):
		return "give another directory, or empty this one"
	case full && errors.Is(err, store.ErrOutcomeUnknown):
		return "free space on that disk, and check whether the write is stored before you repeat it"
	case full:
		return "free space on that disk and try again"
	case limit(err) != "" && errors.Is(err, store.ErrOutcomeUnknown):
		return limit(err) + ", and check whether the write is stored before you repeat it"
	case limit(err) != "":
		return limit(err)
	case errors.Is(err, syscall.EROFS):
		return "give another directory, or make this one writable"
	case errors.Is(err, fs.ErrPermission):
		return "check its owner and permissions"
	case errors.Is(err, store.ErrOutcomeUnknown):
		return lookFirst
	}
	return ""
}

// isPassing reports whether a Table server failed without an effect.
func isPassing(answer *remote.Error) bool {
	failed := answer.Status >= http.StatusInternalServerError && answer.Status != http.StatusNotImplemented
	return failed && answer.Code != "" && !errors.Is(answer, store.ErrOutcomeUnknown)
}

// limit returns the next step if a limit of the process is the cause of err, else "".
func limit(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files (ulimit -n), because each sstable of the database is one"
	case errors.Is(err, syscall.EFBIG):
		return "raise the limit of the size of a file (ulimit -f), or use another file system"
	}
	return ""
}

// Restore is the next step after damage that present entities need.
const Restore = `restore a backup by "tablerock restore"`

// Damaged returns the next step after damage in files of a database. A compaction drops the
// bytes of overwritten and deleted entities without reading them.
func Damaged(files ...string) string {
	for _, name := range files {
		if kind, _ := filename.Parse(filepath.Base(name)); kind != filename.SSTable {
			return Restore
		}
	}
	return `"tablerock compact" removes damage that no present entity needs, and exits 5 otherwise: then ` + Restore
}

// Open returns err, which engine.Open returned, with the next step if the database is damaged.
// "tablerock compact" cannot open it either, and "tablerock verify" finds nothing more.
func Open(err error) error {
	if errors.Is(err, store.ErrCorrupt) {
		return With(err, Restore)
	}
	return err
}

// ErrOneAccount means that --data names the directory of one account's database instead of
// its parent directory.
var ErrOneAccount = errors.New("the database of one account")

// Data returns an error if dir, the value of flag, cannot be a directory of data. The target of a
// symbolic link must exist: it may be on a disk that is not mounted.
func Data(flag, dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s %s: %w: give the directory of the data, or a new one", flag, dir, syscall.ENOTDIR)
	}
	if target, err := os.Readlink(filepath.Clean(dir)); err == nil {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s %s: symbolic link to %s: %w: make that directory, or mount its disk", flag, dir, target, fs.ErrNotExist)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, filename.Manifest)); err == nil {
		return fmt.Errorf("%s %s: %w: give its parent directory", flag, dir, ErrOneAccount)
	}
	return unfinished(dir)
}

// unfinished returns an error if dir does not exist or is empty, and an unfinished restore to
// it does: with another database in dir, the restore could not be finished.
func unfinished(dir string) error {
	dir = filepath.Clean(dir)
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	restoring := dir + backup.Restoring
	if info, err := os.Stat(restoring); err != nil || !info.IsDir() {
		return nil
	}
	return fmt.Errorf("no database in %s: %w; %s is an unfinished restore: finish it by the same \"tablerock restore SRC %s\", or remove it",
		dir, fs.ErrNotExist, restoring, dir)
}

// NoDatabase returns the error for a directory that has no database and that flags name. It
// is store.ErrCorrupt if files of a database are there: an advice to create another one
// would lose them.
func NoDatabase(dir, flags string) error {
	if err := manifest.Lost(vfs.OS(), filepath.ToSlash(dir)); err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	if err := cmp.Or(unfinished(dir), unfinished(filepath.Dir(dir))); err != nil {
		return err
	}
	return fmt.Errorf("no database in %s: %w; give its directory with %s, or create one with \"tablerock table create\" or \"tablerock import\"",
		dir, fs.ErrNotExist, flags)
}

// AzuriteData returns a hint if dir has tables of Azurite and no database of the account,
// which is about to be created.
func AzuriteData(dir, account string) string {
	if _, err := os.Stat(filepath.Join(dir, account)); err == nil {
		return ""
	}
	file := filepath.Join(dir, transfer.AzuriteFile)
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return fmt.Sprintf("%s has tables of Azurite, which are not served; to import them, stop the server and run: tablerock import %q --data %q", file, file, dir)
}

// UnrelatedFiles returns a warning if dir, the value of flag, in which the directory of an
// account is about to be created, contains other files and no database: the user may have meant
// another directory. It ignores hidden files and the lost+found of a new volume.
func UnrelatedFiles(flag, dir, account string) string {
	if _, err := os.Stat(filepath.Join(dir, account)); err == nil {
		return ""
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "" // Open creates it or returns the error
	}
	unrelated := false
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), filename.Manifest)); err == nil {
			return ""
		}
		unrelated = unrelated || !strings.HasPrefix(e.Name(), ".") && e.Name() != "lost+found"
	}
	if !unrelated {
		return ""
	}
	return fmt.Sprintf("%s %s contains other files and no database: creating %s beside them", flag, dir, filepath.Join(dir, account))
}
