package wire

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// setUserTimeout limits how long the kernel repeats bytes that the peer does not
// acknowledge.
func setUserTimeout(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failure error
	err := c.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadPeer.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failure
}
