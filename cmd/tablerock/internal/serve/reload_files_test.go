package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/selfsigned"
)

// reloaded sends SIGHUP and returns the lines that the server logs until the one with text.
func (r *running) reloaded(t *testing.T, text string) []string {
	t.Helper()
	before := len(r.stderr.String())
	r.hangUp(t, text)
	return strings.Split(strings.TrimSpace(r.stderr.String()[before:]), "\n")
}

// TestReloadBadAccounts replaces the accounts file by what cannot be used. One line of the log
// names the file, the accounts stay, also for clients meanwhile, and a good file is read after it.
func TestReloadBadAccounts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "accounts")
	good := "first:" + flagKey + "\n"
	writeFile(t, file, good, 0o600)
	r := start(t, "--accounts-file", file)
	writeFile(t, filepath.Join(r.dir, "data", "noplace"), "a file in the place of the database", 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if got := r.status(t, "first", flagKey); got != http.StatusOK {
					t.Errorf("a client meanwhile: status %d", got)
				}
			}
		})
	}
	text := func(text string, mode os.FileMode) func(string) error {
		return func(name string) error {
			writeFile(t, name, text, mode)
			return nil
		}
	}
	for what, write := range map[string]func(name string) error{
		"no file":               func(string) error { return nil },
		"a directory":           func(name string) error { return os.Mkdir(name, 0o700) },
		"a link to nothing":     func(name string) error { return os.Symlink(filepath.Join(dir, "nothing"), name) },
		"an empty file":         text("", 0o600),
		"half of a key":         text(good+"another:"+fileKey[:21], 0o600),
		"half of a name":        text(good+"an", 0o600),
		"bytes that are no key": text(good+"another:\x00\xff\x00\n", 0o600),
		"a file for everybody":  text(good, 0o644),
		"no place for data":     text(good+"noplace:"+fileKey, 0o600),
	} {
		for range 2 {
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
			if err := write(file); err != nil {
				t.Fatal(err)
			}
			lines := r.reloaded(t, "the accounts stay as they were")
			named := strings.Contains(lines[0], file) || what == "no place for data" && strings.Contains(lines[0], "noplace")
			if len(lines) != 1 || !named || !strings.Contains(lines[0], "ERROR") {
				t.Errorf("%s: the log has %q, want one line with the file", what, lines)
			}
		}
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, good+"another:"+fileKey, 0o600)
		r.reloaded(t, "read the accounts again")
		if got := r.status(t, "another", fileKey); got != http.StatusOK {
			t.Errorf("after %s, a good file: status %d", what, got)
		}
		writeFile(t, file, good, 0o600)
		r.reloaded(t, "read the accounts again")
	}
	for i := range 50 { // more than are read
		writeFile(t, file, good+[]string{"another:" + fileKey, "another"}[i%2], 0o600)
		raise(t, syscall.SIGHUP)
	}
	writeFile(t, file, good+"another:"+fileKey, 0o600)
	r.reloaded(t, "read the accounts again")
	cancel()
	clients.Wait()
}

// TestReloadBadCertificate replaces the files of a certificate by what cannot be used. One line of
// the log names the file, the certificate stays, and good files are read after it.
func TestReloadBadCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	var certs, keys [3][]byte
	for i := range certs {
		var err error
		if certs[i], keys[i], err = selfsigned.New("127.0.0.1"); err != nil {
			t.Fatal(err)
		}
	}
	chain := bytes.Join([][]byte{certs[1], certs[2]}, nil)
	writeFile(t, cert, string(certs[0]), 0o600)
	writeFile(t, key, string(keys[0]), 0o600)
	r := start(t, "--cert", cert, "--key", key)
	served := func() [][]byte {
		t.Helper()
		conn, err := tls.Dial("tcp", strings.Split(r.url, "/")[2], &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var list [][]byte
		for _, c := range conn.ConnectionState().PeerCertificates {
			list = append(list, c.Raw)
		}
		return list
	}
	first := served()[0]
	for _, c := range []struct {
		what      string
		cert, key []byte // nil for no file
	}{
		{"no certificate", nil, keys[1]},
		{"no key", chain, nil},
		{"an empty certificate", []byte{}, keys[1]},
		{"an empty key", chain, []byte{}},
		{"half of a certificate", chain[:len(certs[1])/2], keys[1]},
		{"half of a key", chain, keys[1][:len(keys[1])/2]},
		{"half of the second certificate", chain[:len(certs[1])+len(certs[2])/2], keys[1]},
		{"a second certificate without its last line", chain[:len(chain)-10], keys[1]},
		{"a first certificate without its middle", append(bytes.Clone(certs[1][:300]), certs[1]...), keys[1]},
		{"another key", chain, keys[0]},
		{"no PEM", []byte("\x00\xff"), keys[1]},
	} {
		for name, text := range map[string][]byte{cert: c.cert, key: c.key} {
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
			if text != nil {
				writeFile(t, name, string(text), 0o600)
			}
		}
		lines := r.reloaded(t, "SIGHUP:")
		if len(lines) != 1 || !strings.Contains(lines[0], dir) || !strings.Contains(lines[0], "the certificate stays as it was") {
			t.Errorf("%s: the log has %q, want one line with the file", c.what, lines)
		}
		if got := served(); len(got) != 1 || !bytes.Equal(got[0], first) {
			t.Errorf("%s: the server has another certificate", c.what)
		}
	}
	writeFile(t, cert, "a line before\n"+string(chain), 0o600)
	writeFile(t, key, string(keys[1]), 0o600)
	r.reloaded(t, "read the certificate again")
	if got := served(); len(got) != 2 {
		t.Errorf("after good files the server has %d certificates, want 2", len(got))
	}
}
