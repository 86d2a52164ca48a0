package serve

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bind"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
)

const (
	defaultAdmin = "127.0.0.1:10012"
	anyAdmin     = "127.0.0.1:0"
)

// address is the address of a listener. It is resolved once, so that the address that was
// checked is the one that is used.
type address struct {
	flag string // its flag
	host string // as it was given, "" for none
	tcp  *net.TCPAddr
}

func resolve(flag, text string) (*address, error) {
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return nil, usagef("%s %q is not host:port; an example is %s", flag, text, defaultListen)
	}
	tcp, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return nil, usagef("%s %q: %v", flag, text, err)
	}
	return &address{flag, host, tcp}, nil
}

// addresses resolves the addresses of both listeners, which must differ. The second is nil if --admin
// is off.
func (c *Config) addresses() (main, admin *address, err error) {
	if main, err = resolve("--listen", c.Listen); err != nil {
		return nil, nil, err
	}
	text := c.Admin
	switch {
	case text == adminOff:
		return main, nil, nil
	case text == "" && main.tcp.Port == 0:
		text = anyAdmin
	case text == "":
		text = defaultAdmin
	}
	if admin, err = resolve("--admin", text); err == nil && main.overlaps(admin) {
		return nil, nil, usagef("--listen %s and --admin %s overlap: choose another port for one of them", main.tcp, admin.tcp)
	}
	return main, admin, err
}

// overlaps reports whether one listener on a and another on b would get connections to one address
// and port.
func (a *address) overlaps(b *address) bool {
	all := func(ip net.IP) bool { return ip == nil || ip.IsUnspecified() }
	return a.tcp.Port == b.tcp.Port && a.tcp.Port != 0 &&
		(all(a.tcp.IP) || all(b.tcp.IP) || a.tcp.IP.Equal(b.tcp.IP) && a.tcp.Zone == b.tcp.Zone)
}

// exposed reports whether other machines can reach the address.
func (a *address) exposed() bool { return a != nil && !a.tcp.IP.IsLoopback() }

// check returns the error with which listen would fail now. No client can connect.
func (a *address) check() error {
	if err := bind.Try(a.tcp); err != nil {
		return a.explain(err)
	}
	return nil
}

// listen opens the listener.
func (a *address) listen() (net.Listener, error) {
	l, err := net.ListenTCP("tcp", a.tcp)
	if err != nil {
		return nil, a.explain(err)
	}
	return l, nil
}

// explain adds the flag and the next step to an error of listening.
func (a *address) explain(err error) error {
	for cause, next := range map[syscall.Errno]string{
		syscall.EADDRINUSE:    "end the process that uses it, or choose another address (port 0 selects a free one)",
		syscall.EADDRNOTAVAIL: "give an address of this machine",
		syscall.EACCES:        "choose a port above 1023; lower ones are for privileged users",
	} {
		if errors.Is(err, cause) {
			return hint.With(fmt.Errorf("%s %s: %w", a.flag, a.tcp, cause), next)
		}
	}
	return fmt.Errorf("%s: %w", a.flag, err)
}

// reach returns the host:port by which this machine reaches a listener on the port of at:
// the given name, or a loopback address if it listens on all addresses.
func (a *address) reach(at net.Addr) string {
	host := a.host
	switch {
	case host == "::":
		host = "::1"
	case a.tcp.IP == nil || a.tcp.IP.IsUnspecified():
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(at.(*net.TCPAddr).Port))
}
