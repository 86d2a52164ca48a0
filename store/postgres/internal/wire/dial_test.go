package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// newFront returns a listener before a server, the URL of a new database through it, and the
// address of the server.
func newFront(t *testing.T) (u *url.URL, server string, front net.Listener) {
	t.Helper()
	u, err := url.Parse(pgtest.Shared(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	if front, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	server, u.Host = u.Host, front.Addr().String()
	return u, server, front
}

// TestConnectSendsNoCancelRequest breaks connections while they are checked. pgconn would
// send a CancelRequest then.
func TestConnectSendsNoCancelRequest(t *testing.T) {
	u, server, front := newFront(t)
	canceled := make(chan bool, 10)
	go func() {
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			go breakCheck(c, server, canceled)
		}
	}()
	d, err := NewDialer(u.String(), true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Connect(t.Context()); err == nil {
		t.Fatal("the connection was not broken")
	}
	select {
	case <-canceled:
		t.Error("a CancelRequest was sent")
	case <-time.After(300 * time.Millisecond):
	}
}

// breakCheck forwards a connection to a server and closes it instead of asking whether the
// server is read-only.
func breakCheck(client net.Conn, server string, canceled chan<- bool) {
	defer client.Close()
	target, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer target.Close()
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := target.Read(buf)
			if err != nil {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 4096)
	for {
		n, err := client.Read(buf)
		if err != nil || bytes.Contains(buf[:n], []byte("transaction_read_only")) {
			return
		}
		if n >= 8 && binary.BigEndian.Uint32(buf[4:]) == 80877102 {
			canceled <- true
		}
		if _, err := target.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestConnectSkipsServers checks that a connection is to the first host of the URL that is
// neither avoided nor behind the timeline of another one.
func TestConnectSkipsServers(t *testing.T) {
	first, second := pgtest.Start(t), pgtest.Start(t)
	u, err := url.Parse(first.URL())
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(second.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + other.Host
	d, err := NewDialer(u.String(), true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server := func(c *Conn, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.Server
	}
	at := server(d.Connect(t.Context()))
	if again := server(d.Connect(t.Context())); again != at {
		t.Errorf("the second connection is to %q, the first one to %q", again, at)
	}
	if next := server(d.ConnectOther(t.Context(), at)); next == at {
		t.Errorf("the connection is to %q, which was to be avoided", next)
	}
	d.newest.Store(2) // as after a connection to a server that was promoted once
	if c, err := d.Connect(t.Context()); err == nil {
		t.Errorf("connected to %q, whose timeline is older than 2", c.Server)
	}
}

// TestConnectStandby checks that the error is store.ErrReadOnly if all servers are standbys, and not if one of them cannot
// be reached: it may be the primary.
func TestConnectStandby(t *testing.T) {
	u, server, front := newFront(t)
	pgtest.Exec(t, "postgres://"+u.User.String()+"@"+server+u.Path, `ALTER DATABASE "`+u.Path[1:]+`" SET default_transaction_read_only = on`)
	if err := front.Close(); err != nil {
		t.Fatal(err)
	}
	away := u.Host
	for hosts, want := range map[string]bool{server: true, server + "," + server: true, server + "," + away: false, away + "," + server: false} {
		u.Host = hosts
		d, err := NewDialer(u.String(), true, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Connect(t.Context())
		if !errors.Is(err, ErrStandby) || errors.Is(err, store.ErrReadOnly) != want {
			t.Errorf("hosts %s: %v; want a standby, and %v: %v", hosts, err, store.ErrReadOnly, want)
		}
	}
}

// TestConnectOtherInTimeZone avoids the only server of a database that has another time zone
// than the connections.
func TestConnectOtherInTimeZone(t *testing.T) {
	u := pgtest.Shared(t).NewDatabase(t)
	at, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, u, `ALTER DATABASE "`+at.Path[1:]+`" SET timezone = 'Europe/Berlin'`)
	d, err := NewDialer(u, true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if other, err := d.ConnectOther(t.Context(), c.Server); err == nil {
		t.Errorf("connected to %q, which was to be avoided", other.Server)
		other.Close()
	}
}

// TestServerOfAddresses checks that connections to one server by two of its addresses are to
// the same server.
func TestServerOfAddresses(t *testing.T) {
	u := pgtest.Shared(t).NewDatabase(t)
	d, err := NewDialer(u, true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if d, err = NewDialer(pgtest.SocketURL(t, u), true, time.Now); err != nil {
		t.Fatal(err)
	}
	other, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if c.Server != other.Server {
		t.Errorf("the server is %q, and by another address %q", c.Server, other.Server)
	}
}

// TestConnectToSilentServer connects to a server that answers until the connection is set up.
func TestConnectToSilentServer(t *testing.T) {
	u, server, front := newFront(t)
	go func() {
		client, err := front.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		target, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer target.Close()
		go func() { _, _ = io.Copy(client, target) }()
		buf := make([]byte, 4096)
		for silent := false; ; {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if silent = silent || bytes.Contains(buf[:n], []byte("set_config")); silent {
				continue
			}
			if _, err := target.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	u.RawQuery = "sslmode=disable" // else there are two connections
	d, err := NewDialer(u.String(), true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		c, err := d.Connect(context.WithoutCancel(t.Context()))
		if err == nil {
			c.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("connected without an answer")
		}
	case <-time.After(time.Minute):
		t.Error("Connect waits for ever")
	}
}

// TestParseErrors checks that the error of a URL names the parameter or file at fault, and has
// no password.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"postgres://ann:hunter2@db1/shop?sslmode=bogus", "sslmode is invalid"},
		{"postgres://ann:`:%20hunter2@db1/shop?sslmode=bogus", "sslmode is invalid"},
		{"postgres://ann@db1/shop?password=hunter2&sslmode=verify-ca&sslrootcert=/none/ca.pem", "/none/ca.pem"},
		{"postgres://ann:hun%ter2@db1/shop", errURL.Error()},
		{"postgres://ann:hunter2@[::1/shop", errURL.Error()},
		{"postgres://db1:hunter2/shop", "invalid port"},
		{"host=db1 password=hunter2", errURL.Error()},
	} {
		_, err := NewDialer(c.url, true, time.Now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.url, err, c.want)
		} else if strings.Contains(err.Error(), "ter2") {
			t.Errorf("%s: the error has the password: %v", c.url, err)
		}
	}
}
