package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/vfs"
)

// TestStoppedServer sends requests to a server that accepts connections and answers nothing, as one
// that is stopped. Each notes after a while for which process it waits.
func TestStoppedServer(t *testing.T) {
	dir := t.TempDir()
	account := filepath.ToSlash(filepath.Join(dir, "shop"))
	if err := vfs.OS().MkdirAll(account); err != nil {
		t.Fatal(err)
	}
	lock, err := vfs.OS().Lock(account + "/LOCK")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for name, ask := range map[string]func(ctx context.Context, note Note) error{
		"Open": func(ctx context.Context, note Note) error {
			_, err := Open(ctx, dir, "shop", note)
			return err
		},
		"Client": func(ctx context.Context, note Note) error {
			c, err := Client(ctx, dir, note)
			if err != nil {
				return err
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/.backup", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			_, err = c.Do(r)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var got string
			err := ask(ctx, func(format string, args ...any) {
				got = fmt.Sprintf(format, args...)
				interrupt()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want the interruption", err)
			}
			for _, want := range []string{"waiting for the server that has " + dir + " (pid ", "not answered for 3s"} {
				if !strings.Contains(got, want) {
					t.Errorf("the note is %q, want %q in it", got, want)
				}
			}
		})
	}
}

// TestWaiting counts the notes of connections on which answers come at different times.
func TestWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		answers []time.Duration // after a request; without one the connection is closed 10 s after the last
		conns   int
		want    int
	}{
		"at once":                {[]time.Duration{0, noteAfter - 1, 0}, 1, 0},
		"late":                   {[]time.Duration{0, noteAfter + 1, 0}, 1, 1},
		"late twice":             {[]time.Duration{2 * noteAfter, 2 * noteAfter}, 1, 2},
		"late of several":        {[]time.Duration{noteAfter + 1}, 3, 1},
		"no request, long after": {nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				notes := 0 // guarded by the mutex of waiting
				of := &waiting{dir: t.TempDir(), note: func(string, ...any) { notes++ }}
				ended := make(chan error, c.conns)
				for range c.conns {
					client, server := net.Pipe()
					conn := &noted{Conn: client, of: of}
					go func() {
						buf := make([]byte, 8)
						var err error
						for _, d := range c.answers {
							_, read := server.Read(buf)
							time.Sleep(d)
							_, written := server.Write([]byte("answer"))
							err = errors.Join(err, read, written)
						}
						ended <- err
					}()
					go func() {
						buf := make([]byte, 8)
						var err error
						for range c.answers {
							_, written := conn.Write([]byte("request"))
							_, read := conn.Read(buf)
							err = errors.Join(err, written, read)
						}
						time.Sleep(10 * time.Second)
						ended <- errors.Join(err, conn.Close())
					}()
				}
				for range 2 * c.conns {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				of.mu.Lock()
				defer of.mu.Unlock()
				if notes != c.want {
					t.Errorf("%d notes, want %d", notes, c.want)
				}
			})
		})
	}
}
