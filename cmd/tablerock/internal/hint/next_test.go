package hint

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/store"
)

// TestNext wants what is said of an error to be about its cause.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{syscall.EIO, ""},
		{fmt.Errorf("write: %w", syscall.ENOSPC), "make room"},
		{fmt.Errorf("%w: grow: %w", store.ErrOutcomeUnknown, syscall.ENOSPC), "make room on that disk, and look"},
		{fmt.Errorf("%w: sync: %w", store.ErrOutcomeUnknown, syscall.EIO), "look whether"},
		{fmt.Errorf("mkdir: %w", syscall.EROFS), "make this one writable"},
		{fmt.Errorf("open: %w", syscall.EACCES), "check who owns it"},
		{With(fmt.Errorf("listen: %w", syscall.EACCES), "choose another"), "choose another"},
		{fmt.Errorf("outside: %w", With(fs.ErrPermission, "choose another")), "choose another"},
	} {
		if got := Next(c.err); !strings.HasPrefix(got, c.want) && !strings.HasSuffix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("Next(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
