package hint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
)

// TestNext checks that the next step is that of the cause of an error.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{syscall.EIO, ""},
		{fmt.Errorf("write: %w", syscall.ENOSPC), "free space on that disk and try again"},
		{fmt.Errorf("apply: %w", store.ErrNoSpace), "free space on that disk and try again"},
		{fmt.Errorf("%w: grow: %w", store.ErrOutcomeUnknown, syscall.ENOSPC), "free space on that disk, and check"},
		{fmt.Errorf("%w: sync: %w", store.ErrOutcomeUnknown, syscall.EIO), "check whether"},
		{fmt.Errorf("open: %w", syscall.EMFILE), "each sstable of the database is one"},
		{fmt.Errorf("open: %w", syscall.ENFILE), "each sstable of the database is one"},
		{fmt.Errorf("%w: create: %w", store.ErrOutcomeUnknown, syscall.EMFILE), "is one, and check whether the write is stored before you repeat it"},
		{fmt.Errorf("preallocate: %w", syscall.EFBIG), "raise the limit of the size of a file"},
		{fmt.Errorf("mkdir: %w", syscall.EROFS), "make this one writable"},
		{&remote.AddressError{What: "the certificate is not trusted: x509: certificate signed by unknown authority"}, "trust the certificate on this machine"},
		{&remote.AddressError{What: "the server speaks TLS: use https://"}, ""},
		{&remote.Error{Status: 404}, "check that this is the address of a Table server"},
		{&remote.Error{Status: 404, Code: "InvalidUri"}, ""},
		{&remote.Error{Status: 500}, ""},
		{&remote.Error{Status: 500, Code: "InternalError"}, "try again later"},
		{&remote.Error{Status: 501, Code: "NotImplemented"}, ""},
		{Local(fmt.Errorf("%w: dial", store.ErrUnavailable)), "repeat the command: when that server has ended"},
		{Local(fmt.Errorf("%w: %w", store.ErrUnavailable, &remote.Error{Status: 503})), "try again later"},
		{Local(fmt.Errorf("%w: cut", store.ErrOutcomeUnknown)), lookFirst},
		{Repeatable(fmt.Errorf("%w: cut", store.ErrOutcomeUnknown)), ""},
		{Repeatable(fmt.Errorf("apply: %w", store.ErrNoSpace)), "free space on that disk and try again"},
		{fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, context.Canceled), ""},
		{Interrupted(fmt.Errorf("copy: %w", context.Canceled), "nothing is copied"), "nothing is copied"},
		{Interrupted(syscall.ENOSPC, "nothing is copied"), "free space on that disk and try again"},
		{fmt.Errorf("%w: %w", &remote.Error{Status: 408}, store.ErrOutcomeUnknown), lookFirst},
		{fmt.Errorf("%w: %w", &remote.Error{Status: 403, Code: "AuthenticationFailed"}, fs.ErrPermission), "check the account, its key or the SAS"},
		{fmt.Errorf("%w: %w", &remote.Error{Status: 403, Code: "AuthorizationPermissionMismatch"}, fs.ErrPermission), "the SAS or the role does not allow this"},
		{fmt.Errorf("open: %w", syscall.EACCES), "check its owner and permissions"},
		{With(fmt.Errorf("listen: %w", syscall.EACCES), "choose another"), "choose another"},
		{fmt.Errorf("outside: %w", With(fs.ErrPermission, "choose another")), "choose another"},
	} {
		if got := Next(c.err); !strings.HasPrefix(got, c.want) && !strings.HasSuffix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("Next(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestClearOnFullDisk(t *testing.T) {
	full := Clear(fmt.Errorf("apply: %w", store.ErrNoSpace))
	if got := Next(full); !strings.Contains(got, `"tablerock table delete", which frees the space at once`) || !errors.Is(full, store.ErrNoSpace) {
		t.Errorf("the next step is %q", got)
	}
	if other := Clear(store.ErrLocked); !errors.Is(other, store.ErrLocked) || strings.Contains(Next(other), "table delete") {
		t.Errorf("the next step after another error is %q", Next(other))
	}
	if err := Clear(nil); err != nil {
		t.Errorf("got %v without an error", err)
	}
}

// TestDataThroughLink checks that the data is not created in place of a directory whose disk is not mounted.
func TestDataThroughLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "data")
	if err := os.Symlink("disk", link); err != nil {
		t.Skip(err)
	}
	err := Data("--data", link)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "symbolic link to disk") {
		t.Errorf("a link to no directory: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Data("--data", link); err != nil {
		t.Errorf("a link to a directory: %v", err)
	}
}
