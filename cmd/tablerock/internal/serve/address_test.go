package serve

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		listen, admin string
		wantAdmin     string // "" for none
		exposed       bool
	}{
		{"127.0.0.1:10002", "", "127.0.0.1:10012", false},
		{"127.0.0.1:0", "", "127.0.0.1:0", false},
		{"127.0.0.1:0", "127.0.0.1:7", "127.0.0.1:7", false},
		{"127.0.0.1:0", "off", "", false},
		{"localhost:1", "off", "", false},
		{"[::1]:1", "off", "", false},
		{"0.0.0.0:1", "off", "", true},
		{"[::]:1", "off", "", true},
		{":1", "off", "", true},
		{"192.0.2.1:1", "off", "", true},
		{"127.0.0.1:1", ":2", ":2", true},
	} {
		main, admin, err := (&Config{Listen: c.listen, Admin: c.admin}).addresses()
		if err != nil {
			t.Errorf("--listen %s, --admin %q: %v", c.listen, c.admin, err)
			continue
		}
		got := ""
		if admin != nil {
			got = admin.tcp.String()
		}
		if got != c.wantAdmin || (main.exposed() || admin.exposed()) != c.exposed {
			t.Errorf("--listen %s, --admin %q: admin at %q, exposed %v; want %q, %v", c.listen, c.admin, got, !c.exposed, c.wantAdmin, c.exposed)
		}
	}
}

// TestAddressesConflict gives both listeners one port, which only different addresses can share.
func TestAddressesConflict(t *testing.T) {
	for _, c := range []struct {
		listen, admin string
		conflict      bool
	}{
		{"127.0.0.1:7777", "127.0.0.1:7777", true},
		{":7777", "0.0.0.0:7777", true},
		{":7777", "localhost:7777", true},
		{"127.0.0.1:7777", "[::]:7777", true},
		{"[::1]:7777", "[::1]:7777", true},
		{defaultAdmin, "", true},
		{"127.0.0.1:7777", "127.0.0.1:7778", false},
		{"127.0.0.1:7777", "[::1]:7777", false},
		{"127.0.0.1:7777", "127.0.0.2:7777", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{defaultAdmin, adminOff, false},
	} {
		_, _, err := (&Config{Listen: c.listen, Admin: c.admin}).addresses()
		named := err != nil && strings.Contains(err.Error(), "--listen "+c.listen) && strings.Contains(err.Error(), "--admin ")
		if (err != nil) != c.conflict || named != c.conflict {
			t.Errorf("--listen %s, --admin %q: error %v, want one that names both: %v", c.listen, c.admin, err, c.conflict)
		}
	}
}

func TestReach(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1", "localhost:0": "localhost", "0.0.0.0:0": "127.0.0.1", ":0": "127.0.0.1", "[::]:0": "[::1]", "[::1]:0": "[::1]",
	} {
		t.Run(listen, func(t *testing.T) {
			a, err := resolve("--listen", listen)
			if err != nil {
				t.Fatal(err)
			}
			l, err := a.listen()
			if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Skip("this machine has no such address")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			got := a.reach(l.Addr())
			if host, _, ok := cutLast(got); !ok || host != want {
				t.Errorf("reached at %s, want %s and a port", got, want)
			}
			conn, err := net.Dial("tcp", got)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

// TestAddressCheck checks an address that is free, and one that is not.
func TestAddressCheck(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]", "0.0.0.0", "[::]", "", "localhost"} {
		t.Run(host, func(t *testing.T) {
			busy, err := resolve("--listen", host+":0")
			if err != nil {
				t.Fatal(err)
			}
			l, err := busy.listen()
			if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Skip("this machine has no such address")
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := busy.check(); err != nil {
				t.Errorf("port 0: %v", err)
			}
			busy.tcp.Port = l.Addr().(*net.TCPAddr).Port
			if err := busy.check(); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "--listen ") {
				t.Errorf("while a listener has the address, check returns %v, want %v", err, syscall.EADDRINUSE)
			}
			l.Close()
			if err := busy.check(); err != nil {
				t.Errorf("after the listener is closed, check returns %v", err)
			}
			again, err := busy.listen()
			if err != nil {
				t.Fatalf("after a check, listen returns %v", err)
			}
			again.Close()
		})
	}
}

func cutLast(s string) (host, port string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
