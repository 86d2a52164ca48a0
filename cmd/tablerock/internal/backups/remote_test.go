package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// TestKinds passes errors from a server to a command, which ends with the exit code of their kind.
func TestKinds(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{store.ErrLocked, store.ErrLocked},
		{store.ErrCorrupt, store.ErrCorrupt},
		{store.ErrNoSpace, store.ErrNoSpace},
		{store.ErrNotDatabase, store.ErrNotDatabase},
		{backup.ErrNotBackup, store.ErrNotDatabase},
		{syscall.ENOENT, fs.ErrNotExist},
		{syscall.EACCES, fs.ErrPermission},
		{syscall.EROFS, syscall.EROFS},
		{fmt.Errorf("%w: %w", store.ErrLocked, fs.ErrNotExist), store.ErrLocked},
	} {
		err := fmt.Errorf("make a backup: %w", c.err)
		m := message{Error: err.Error(), Kind: kindOf(err)}
		if got := m.failure(); !errors.Is(got, c.want) || got.Error() != err.Error() {
			t.Errorf("%v is %q for a command, want %v", err, got, c.want)
		}
	}
	if kind := kindOf(errors.New("another")); kind != "" {
		t.Errorf("another error has the kind %q", kind)
	}
}

// TestOneFailedAccount backs up two accounts through a server. The database of the first is
// closed: the second has a backup, of which the command learns.
func TestOneFailedAccount(t *testing.T) {
	data, dest := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	w, err := NewWriter(t.Context(), dest, data)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var dbs []Database
	for _, name := range []string{"one", "two"} {
		db, err := engine.Open(filepath.ToSlash(filepath.Join(data, name)), engine.Options{MemoryBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		dbs = append(dbs, Database{name, db})
	}
	if err := dbs[0].DB.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := local.Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		Serve(rw, r, func(ctx context.Context, _, _ string, progress Progress) ([]backup.Info, error) {
			return w.Create(ctx, data, dbs, progress)
		})
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	list, err := ask(t.Context(), data, request{Dest: dest}, t.Logf, func(string, int64, int64) {})
	if err == nil || !strings.Contains(err.Error(), "back up account one") || len(list) != 1 || list[0].Account != "two" {
		t.Errorf("the command learns of %+v and %v, want a backup of two and an error of one", list, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-done
}

// TestInsideByLink names a directory in the data directory by a link, and one beside it.
func TestInsideByLink(t *testing.T) {
	data, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	for dir, want := range map[string]bool{
		link: true, filepath.Join(link, "new", "backups"): true, filepath.Join(data, "new"): true,
		filepath.Join(filepath.Dir(link), "new"): false, data + "-backups": false,
	} {
		for _, data := range []string{data, link} {
			if got := inside(dir, data); got != want {
				t.Errorf("inside(%s, %s) = %v, want %v", dir, data, got, want)
			}
		}
	}
}

// TestServerEnds ends the server before it answers, and after it has begun to. The error says
// what to do.
func TestServerEnds(t *testing.T) {
	data := t.TempDir()
	for _, begun := range []bool{false, true} {
		l, err := local.Listen(data)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if begun {
				_ = http.NewResponseController(rw).Flush()
			}
			panic(http.ErrAbortHandler)
		})}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		_, err = ask(t.Context(), data, request{Dest: "there"}, t.Logf, func(string, int64, int64) {})
		if err == nil || !strings.Contains(err.Error(), data+" ended before the backup") || strings.Contains(err.Error(), "localhost") ||
			!strings.Contains(hint.Next(err), "repeat the command") {
			t.Errorf("begun %v: the error is %v and the next step %q", begun, err, hint.Next(err))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-done
	}
}

// TestLateInterrupt interrupts a command when the server has made the backup.
func TestLateInterrupt(t *testing.T) {
	data := t.TempDir()
	l, err := local.Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"account":"one","done":1,"total":2} {"result":[{"Account":"one"}]}`)
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	ctx, interrupt := context.WithCancel(t.Context())
	list, err := ask(ctx, data, request{Dest: "there"}, t.Logf, func(string, int64, int64) { interrupt() })
	if err != nil || len(list) != 1 || list[0].Account != "one" {
		t.Errorf("the command learns of %+v and %v, want the backup of one", list, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-done
}
