package wire

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeadPeer checks that the kernel ends a connection to a host that vanished.
func TestDeadPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dialTCP(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		name                string
		level, option, want int
	}{
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 15_000},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 5},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
		{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
	} {
		var got int
		var failure error
		if err := raw.Control(func(fd uintptr) { got, failure = unix.GetsockoptInt(int(fd), o.level, o.option) }); err != nil || failure != nil {
			t.Fatal(o.name, err, failure)
		}
		if got != o.want {
			t.Errorf("%s is %d, want %d", o.name, got, o.want)
		}
	}
}
