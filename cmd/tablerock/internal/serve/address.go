package serve

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
)

const (
	defaultAdmin = "127.0.0.1:10012"
	anyAdmin     = "127.0.0.1:0"
)

// address is where a listener is to be, resolved once, so that what was judged
// is what is listened on.
type address struct {
	flag string // its flag
	host string // as it was given, "" for none
	tcp  *net.TCPAddr
}

func resolve(flag, text string) (*address, error) {
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return nil, usagef("%s %q is no host:port; one is %s", flag, text, defaultListen)
	}
	tcp, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return nil, usagef("%s %q: %v", flag, text, err)
	}
	return &address{flag, host, tcp}, nil
}

// addresses resolves both listeners; the second is nil if there is none.
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
	admin, err = resolve("--admin", text)
	return main, admin, err
}

// exposed reports whether other machines can reach the address.
func (a *address) exposed() bool { return a != nil && !a.tcp.IP.IsLoopback() }

// listen takes the address.
func (a *address) listen() (net.Listener, error) {
	l, err := net.ListenTCP("tcp", a.tcp)
	if err == nil {
		return l, nil
	}
	for cause, next := range map[syscall.Errno]string{
		syscall.EADDRINUSE:    "end the process that listens there, or choose another address (port 0 takes any that is free)",
		syscall.EADDRNOTAVAIL: "give an address of this machine",
		syscall.EACCES:        "choose a port above 1023; those below are for privileged users",
	} {
		if errors.Is(err, cause) {
			return nil, hint.With(fmt.Errorf("%s %s: %w", a.flag, a.tcp, cause), next)
		}
	}
	return nil, fmt.Errorf("%s: %w", a.flag, err)
}

// reach returns host:port under which this machine reaches l: the name that was
// given, or a loopback address where the listener takes all.
func (a *address) reach(l net.Listener) string {
	host := a.host
	switch {
	case host == "::":
		host = "::1"
	case a.tcp.IP == nil || a.tcp.IP.IsUnspecified():
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}
