// Package local connects commands to a server that has their data directory: by a Unix
// socket in that directory, or where there are no such sockets by a port of loopback and a
// token in a file. Whoever may open the socket or read the file has the rights of the
// directory's owner.
package local

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tablerock-db/tablerock/store/remote"
)

// The names of the files in a data directory.
const (
	socketName = "serve.sock"
	tokenName  = "serve.token"
)

// maxSocketPath is the longest path that a Unix socket can have on every system.
const maxSocketPath = 100

// dialTime limits the time to connect.
const dialTime = 2 * time.Second

// ErrServed means that another server listens for commands on the directory.
var ErrServed = errors.New("another server listens for commands in this directory")

// Listener accepts connections of the commands that use a data directory.
type Listener struct {
	net.Listener
	token string // "" for a socket
	path  string // of the socket or the token file
	info  fs.FileInfo
}

// access is the content of a token file.
type access struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

// Listen listens in the data directory dir. It replaces what a server that was killed left
// there.
func Listen(dir string) (*Listener, error) {
	if c, _, err := dial(context.Background(), dir); err == nil {
		_ = c.Close()
		return nil, ErrServed
	}
	l, err := listenSocket(dir)
	if err != nil {
		if l, err = listenToken(dir); err != nil {
			return nil, fmt.Errorf("listen for commands: %w", err)
		}
	}
	other := tokenName
	if l.token != "" {
		other = socketName
	}
	_ = os.Remove(filepath.Join(dir, other)) // of a server that was killed; commands ignore it
	if l.info, err = os.Lstat(l.path); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for commands: %w", err), l.Listener.Close())
	}
	return l, nil
}

// listenSocket makes the socket in a directory of its own, which no other user can enter,
// until it has its mode.
func listenSocket(dir string) (*Listener, error) {
	path := filepath.Join(dir, socketName)
	if absolute, err := filepath.Abs(path); err != nil || len(absolute) > maxSocketPath || runtime.GOOS == "windows" {
		return nil, errors.ErrUnsupported
	}
	private, err := os.MkdirTemp(dir, ".serve-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	made := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{Listener: l, path: path}, nil
}

// listenToken listens on a port of loopback and writes the token file.
func listenToken(dir string) (*Listener, error) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Listener{Listener: inner, token: rand.Text(), path: filepath.Join(dir, tokenName)}
	text, err := json.Marshal(access{inner.Addr().String(), l.token})
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	f, err := os.CreateTemp(dir, ".serve-*") // its mode is 0600
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), l.path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()), inner.Close())
	}
	return l, nil
}

// Close ends the listener and removes its file.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	if info, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(info, l.info) {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}

// Allows reports whether the sender of a request may use the directory.
func (l *Listener) Allows(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(remote.TokenHeader)), []byte(l.token)) == 1
}

// dial connects to the server of dir and returns the token for its requests.
func dial(ctx context.Context, dir string) (net.Conn, string, error) {
	d := net.Dialer{Timeout: dialTime}
	c, err := d.DialContext(ctx, "unix", shortest(filepath.Join(dir, socketName)))
	if err == nil {
		return c, "", nil
	}
	at, tokenErr := readToken(dir)
	if errors.Is(tokenErr, fs.ErrNotExist) {
		return nil, "", err
	}
	if tokenErr != nil {
		return nil, "", errors.Join(err, tokenErr)
	}
	c, err = d.DialContext(ctx, "tcp", at.Address)
	return c, at.Token, err
}

// readToken reads the token file of dir.
func readToken(dir string) (access, error) {
	const most = 4 << 10
	var at access
	f, err := os.Open(filepath.Join(dir, tokenName))
	if err != nil {
		return at, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return at, err
	}
	if err := json.Unmarshal(text, &at); err != nil {
		return at, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if host, _, err := net.SplitHostPort(at.Address); err != nil || host != "127.0.0.1" {
		return at, fmt.Errorf("%s names no address of loopback", f.Name())
	}
	return at, nil
}

// shortest returns the shortest form of a path.
func shortest(path string) string {
	if absolute, err := filepath.Abs(path); err == nil && len(absolute) < len(path) {
		path = absolute
	}
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, path); err == nil && len(relative) < len(path) {
			path = relative
		}
	}
	return path
}

// Client returns a client for requests to the server that has the data directory dir. It
// fails if no server answers there. It notes that a request waits long for its answer.
func Client(ctx context.Context, dir string, note Note) (*http.Client, error) {
	connect, token, err := connector(ctx, dir, note)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &withToken{&http.Transport{DialContext: connect}, token}}, nil
}

// connector returns a function that connects to the server that has the data directory dir, and
// the token for requests. It fails if no server answers there.
func connector(ctx context.Context, dir string, note Note) (connect func(context.Context, string, string) (net.Conn, error), token string, err error) {
	c, token, err := dial(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	of := &waiting{dir: dir, note: note}
	connect = func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, _, err := dial(ctx, dir)
		if err != nil {
			return nil, err
		}
		return &noted{Conn: c, of: of}, nil
	}
	return connect, token, c.Close()
}

// withToken adds the token of a listener to requests.
type withToken struct {
	*http.Transport
	token string
}

// RoundTrip sends a request.
func (t *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if t.token != "" {
		r.Header.Set(remote.TokenHeader, t.token)
	}
	return t.Transport.RoundTrip(r)
}

// Open returns a store of an account of the server that has the data directory dir. It
// fails if no server answers there, or if the server does not have the account. It notes that a
// request waits long for its answer.
func Open(ctx context.Context, dir, account string, note Note) (*remote.Store, error) {
	connect, token, err := connector(ctx, dir, note)
	if err != nil {
		return nil, err
	}
	e := remote.Endpoint{URL: "http://localhost/" + account, Account: account}
	s, err := remote.Open(e, remote.Options{Dial: connect, Token: token, Name: "the server that has " + dir})
	if err != nil {
		return nil, err
	}
	if _, err := s.Tables(ctx, "", 1); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
