package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
)

// blocking is an output whose first Write of a text waits until release is closed.
type blocking struct {
	output
	waits            string // the text
	once             sync.Once
	reached, release chan struct{}
}

func (b *blocking) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(b.waits)) {
		b.once.Do(func() {
			close(b.reached)
			<-b.release
		})
	}
	return b.output.Write(p)
}

// unusedPort returns an address of loopback that nobody listens on. On Linux, a socket that
// does not listen keeps others from getting the port before the server has it.
func unusedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		t.Cleanup(func() { _ = syscall.Close(fd) })
	} else {
		defer syscall.Close(fd)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// get returns the status and the body of a URL.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestListenerOpensAfterDatabases starts a server that is stopped by its standard error
// just before it opens its database: the admin listener answers, and the service refuses
// connections.
func TestListenerOpensAfterDatabases(t *testing.T) {
	data := t.TempDir()
	// The file causes a note on standard error.
	if err := os.WriteFile(filepath.Join(data, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout := &started{done: make(chan struct{})}
	stderr := &blocking{reached: make(chan struct{}), release: make(chan struct{})}
	c := Config{Data: data, Version: "test", Stdout: stdout, Stderr: stderr}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.Flags(set)
	service, admin := unusedPort(t), unusedPort(t)
	if err := set.Parse([]string{"--listen", service, "--admin", admin}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	release := sync.OnceFunc(func() { close(stderr.release) })
	t.Cleanup(func() {
		release()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve ends with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})

	<-stderr.reached
	conn, err := net.Dial("tcp", service)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("before the database is open, a connection to the service gets %v, want %v", err, syscall.ECONNREFUSED)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		if status, text := get(t, "http://"+admin+path); status != want {
			t.Errorf("before the database is open, %s returns %d %q, want %d", path, status, text, want)
		}
	}
	if _, err := os.Stat(filepath.Join(data, developmentAccount)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the database is there already: %v", err)
	}
	release()
	<-stdout.done
	if status, text := get(t, "http://"+admin+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz returns %d %q, want 200", status, text)
	}
	if status, text := get(t, "http://"+service+"/healthz"); status != http.StatusOK || text != "" {
		t.Errorf("/healthz of the service returns %d %q, want 200 and nothing", status, bytes.TrimSpace([]byte(text)))
	}
}

// noting is an output that calls a function when a database is created beside other files.
type noting func()

func (f noting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("other files")) {
		f()
	}
	return len(p), nil
}

// TestEndBeforeReady ends a server while it opens the first of two databases. It does not open the other one.
func TestEndBeforeReady(t *testing.T) {
	dir := t.TempDir()
	data, accounts := filepath.Join(dir, "data"), filepath.Join(dir, "accounts")
	// The file causes a note on standard error.
	err := errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "letter"), nil, 0o600),
		os.WriteFile(accounts, []byte("second:"+developmentKey+"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := Config{Data: data, Version: "test", Stdout: io.Discard, Stderr: noting(cancel)}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.Flags(set)
	if err := set.Parse([]string{"--listen", "127.0.0.1:0", "--accounts-file", accounts}); err != nil {
		t.Fatal(err)
	}
	if err := Run(ctx, c); err != nil {
		t.Errorf("serve ends with %v", err)
	}
	var opened []string
	for _, name := range []string{developmentAccount, "second"} {
		if _, err := os.Stat(filepath.Join(data, name, "MANIFEST")); err == nil {
			opened = append(opened, name)
		}
	}
	if !slices.Equal(opened, []string{developmentAccount}) {
		t.Errorf("the databases %v were opened, want the first one", opened)
	}
}
