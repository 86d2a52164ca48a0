package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/selfsigned"
)

// TestReloadLimitsConnections adds accounts to a server, whose databases need open files that
// connections could have until then.
func TestReloadLimitsConnections(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 160, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "accounts")
	writeFile(t, file, "first:"+flagKey, 0o600)
	r := start(t, "--accounts-file", file)
	for _, step := range []struct{ accounts, want string }{
		{"first second third fourth fifth", "connections=80"},
		{"first", "connections=80"}, // the databases of the others stay open
	} {
		var lines []string
		for name := range strings.FieldsSeq(step.accounts) {
			lines = append(lines, name+":"+flagKey)
		}
		writeFile(t, file, strings.Join(lines, "\n"), 0o600)
		r.hangUp(t, step.want)
	}
	if !strings.Contains(r.stderr.String(), "connections=112") {
		t.Errorf("the limit at the start is not 112: %s", r.stderr)
	}
}

// TestReloadPipes starts a server with the accounts of a pipe, as a process substitution gives
// them. Then it has a pipe without a writer in the place of each file that a reload reads: the
// reload does not wait for one, and says which file is a pipe.
func TestReloadPipes(t *testing.T) {
	dir := t.TempDir()
	accounts, cert, key, pipe := filepath.Join(dir, "accounts"), filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "pipe")
	certPEM, keyPEM, err := selfsigned.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{accounts: "first:" + flagKey, cert: string(certPEM), key: string(keyPEM)}
	writeFile(t, cert, texts[cert], 0o600)
	writeFile(t, key, texts[key], 0o600)
	if err := errors.Join(syscall.Mkfifo(accounts, 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(accounts, []byte(texts[accounts]), 0o600) }()
	r := start(t, "--accounts-file", accounts, "--cert", cert, "--key", key)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	r.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	if got := r.status(t, "first", flagKey); got != 200 {
		t.Errorf("the account of the pipe: status %d, want 200", got)
	}
	if !strings.Contains(r.stderr.String(), "the pipe "+accounts) {
		t.Errorf("the server does not say that the accounts are in a pipe: %s", r.stderr)
	}
	for _, c := range []struct{ file, kept, done string }{
		{accounts, "the accounts stay as they were", "read the accounts again"},
		{cert, "the certificate stays as it was", "read the certificate again"},
		{key, "the certificate stays as it was", "read the certificate again"},
	} {
		if err := errors.Join(os.Remove(c.file), os.Symlink(pipe, c.file)); err != nil {
			t.Fatal(err)
		}
		if lines := r.reloaded(t, c.kept); !strings.Contains(strings.Join(lines, "\n"), c.file+" is a pipe, not a regular file") {
			t.Errorf("%s: the log has %q, want that it is a pipe", c.file, lines)
		}
		if err := os.Remove(c.file); err != nil {
			t.Fatal(err)
		}
		writeFile(t, c.file, texts[c.file], 0o600)
		r.hangUp(t, c.done)
		if got := r.status(t, "first", flagKey); got != 200 {
			t.Errorf("after a pipe as %s, status %d, want 200", c.file, got)
		}
	}

	data := filepath.Join(dir, "data")
	for name, c := range map[string]*Config{
		pipe:                                    {Cert: pipe, Key: key},
		filepath.Join(data, selfsigned.KeyFile): {SelfSigned: true, Data: data},
	} {
		if err := errors.Join(os.MkdirAll(data, 0o700), os.RemoveAll(name), syscall.Mkfifo(name, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := c.certificate("127.0.0.1")
		if err == nil || !strings.Contains(err.Error(), name+" is a pipe, not a regular file") {
			t.Errorf("at the start, with a pipe as %s: %v", name, err)
		}
		if usage := new(UsageError); errors.As(err, &usage) == c.SelfSigned {
			t.Errorf("the error %v is one of usage: %v, want it for a pipe that a flag names", err, !c.SelfSigned)
		}
	}
}

// TestStartWaitsForPipe starts servers of which a file is a pipe that nobody writes to. The end of the
// context ends them, as a signal does.
func TestStartWaitsForPipe(t *testing.T) {
	dir := t.TempDir()
	for _, flag := range []string{"--accounts-file", "--faults"} {
		pipe := filepath.Join(dir, "pipe"+flag) // the server before can still read the other one
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		c := Config{Data: filepath.Join(dir, "data"), Stdout: io.Discard, Stderr: io.Discard}
		set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		c.Flags(set)
		c.Backend.Add(set)
		if err := set.Parse([]string{"--listen", "127.0.0.1:0", flag, pipe}); err != nil {
			t.Fatal(err)
		}
		writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.WriteString("#"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, c) }()
		for n := 1; n > 0 && err == nil; { // until the server has read it
			n, err = unix.IoctlGetInt(int(writer.Fd()), unix.TIOCINQ)
			runtime.Gosched()
		}
		if err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", flag, err, context.Canceled)
		}
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}
}
