//go:build unix

package bind

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// errFree ends an attempt to listen on an address that is free.
var errFree = errors.New("the address is free")

// Try returns the error with which net.ListenTCP would fail, or nil. It binds a
// socket and does not listen, so no client can connect.
func Try(a *net.TCPAddr) error {
	try := net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) error {
		var err error
		if controlErr := c.Control(func(fd uintptr) { err = syscall.Bind(int(fd), socketAddress(network, a)) }); controlErr != nil {
			return controlErr
		}
		if err != nil {
			return err
		}
		return errFree
	}}
	l, err := try.Listen(context.Background(), "tcp", a.String())
	if err == nil {
		return l.Close()
	}
	if errors.Is(err, errFree) {
		return nil
	}
	return err
}

// socketAddress returns the address for a socket of the network, tcp4 or tcp6.
func socketAddress(network string, a *net.TCPAddr) syscall.Sockaddr {
	if network == "tcp4" {
		s := &syscall.SockaddrInet4{Port: a.Port}
		copy(s.Addr[:], a.IP.To4())
		return s
	}
	s := &syscall.SockaddrInet6{Port: a.Port}
	if !a.IP.IsUnspecified() {
		copy(s.Addr[:], a.IP.To16())
	}
	if zone, err := net.InterfaceByName(a.Zone); err == nil {
		s.ZoneId = uint32(zone.Index)
	}
	return s
}
