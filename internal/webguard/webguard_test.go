package webguard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	type header map[string]string
	navigation := header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	for _, c := range []struct {
		name, method, host, path string
		secure                   bool
		header                   header
		want                     error
	}{
		{name: "address", host: "192.0.2.7:10012"},
		{name: "IPv6", host: "[2001:db8::1]:10012"},
		{name: "IPv6 without port", host: "[::1]"},
		{name: "localhost", host: "LocalHost:10012"},
		{name: "name of the server", host: "Tables.Example.:443"},
		{name: "name of another server", host: "evil.example", want: ErrHost},
		{name: "name that ends as one of the server", host: "evil.tables.example", want: ErrHost},
		{name: "name that looks like an address", host: "127.0.0.1.evil.example", want: ErrHost},
		{name: "no name", host: "", want: ErrHost},
		{name: "name before the origin", host: "evil.example", header: header{"Origin": "http://evil.example"}, want: ErrHost},

		{name: "write of the page", method: "POST", header: header{"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-origin"}},
		{name: "write of another page", method: "POST", header: header{"Origin": "http://evil.example"}, want: ErrOrigin},
		{name: "write of another port", method: "POST", header: header{"Origin": "http://127.0.0.1:2"}, want: ErrOrigin},
		{name: "write of a sandbox", method: "POST", header: header{"Origin": "null"}, want: ErrOrigin},
		{name: "write without an origin", method: "POST", want: ErrOrigin},
		{name: "write of a plain page to a secure server", method: "POST", secure: true, header: header{"Origin": "http://127.0.0.1:1"}, want: ErrOrigin},
		{name: "write of a secure page", method: "POST", secure: true, header: header{"Origin": "https://127.0.0.1:1"}},
		{name: "write of a secure page to a plain server", method: "POST", header: header{"Origin": "https://127.0.0.1:1"}, want: ErrOrigin},
		{name: "write of an extension", method: "POST", header: header{"Origin": "chrome-extension://127.0.0.1:1"}, want: ErrOrigin},
		{name: "read of another page", header: header{"Origin": "http://evil.example"}, want: ErrOrigin},

		{name: "image in another page", header: header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, want: ErrOrigin},
		{name: "another port of the site", header: header{"Sec-Fetch-Site": "same-site"}, want: ErrOrigin},
		{name: "typed address", header: header{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}},
		{name: "link elsewhere", header: navigation},
		{name: "link elsewhere into the API", path: "/ui/api/tables", header: navigation, want: ErrOrigin},
		{name: "form elsewhere", method: "POST", header: navigation, want: ErrOrigin},
		{name: "frame elsewhere", header: header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, want: ErrOrigin},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := New(c.secure, "/ui/api/", func(name string) bool { return name == "tables.example" })
			if c.method == "" {
				c.method = http.MethodGet
			}
			if c.path == "" {
				c.path = "/ui/"
			}
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Host = c.host
			if c.host == "" && c.name != "no name" {
				r.Host = "127.0.0.1:1"
			}
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			if err := g.Check(r); !errors.Is(err, c.want) {
				t.Errorf("Check returns %v, want %v", err, c.want)
			}
		})
	}
	r := httptest.NewRequest(http.MethodGet, "/ui/", nil)
	r.Host = "tables.example"
	if err := New(false, "/ui/api/", nil).Check(r); !errors.Is(err, ErrHost) {
		t.Errorf("a server without names returns %v for one", err)
	}
}

// TestFailures begins logins of two addresses, of which one succeeds.
func TestFailures(t *testing.T) {
	now := time.Unix(0, 0)
	f := NewFailures(func() time.Time { return now })
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	for i := range maxFailures - 1 {
		if wait := f.Begin(one); wait != 0 {
			t.Fatalf("after %d failures: wait %v", i, wait)
		}
	}
	for range 2 * maxFailures {
		if wait := f.Begin(one); wait != 0 {
			t.Fatalf("after logins that succeed: wait %v", wait)
		}
		f.Succeed(one)
	}
	f.Begin(one)
	for range 3 { // those that must wait do not count
		if wait := f.Begin(one); wait != failureTime {
			t.Errorf("wait %v after the last failure, want %v", wait, failureTime)
		}
	}
	if wait := f.Begin(other); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	now = now.Add(failureTime / 4)
	if wait := f.Begin(one); wait != failureTime*3/4 {
		t.Errorf("wait %v after a quarter, want three quarters of %v", wait, failureTime)
	}
	now = now.Add(failureTime * 3 / 4)
	if wait := f.Begin(one); wait != 0 {
		t.Errorf("wait %v after %v", wait, failureTime)
	}
	if wait := f.Begin(one); wait != failureTime {
		t.Errorf("wait %v after one more failure, want %v", wait, failureTime)
	}
	now = now.Add(maxFailures * failureTime)
	for _, addr := range []netip.Prefix{one, other} {
		if wait := f.Begin(addr); wait != 0 {
			t.Errorf("wait %v when all failures are old", wait)
		}
		f.Succeed(addr)
	}
	if kept := addresses(f); kept != 0 {
		t.Errorf("%d addresses are kept when all failures are old", kept)
	}
}

// addresses returns how many addresses have failures.
func addresses(f *Failures) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of)
}

// TestFailuresOfManyAddresses notes failures of more addresses than are kept.
func TestFailuresOfManyAddresses(t *testing.T) {
	f := NewFailures(func() time.Time { return time.Unix(0, 0) })
	addr := netip.MustParseAddr("10.0.0.0")
	for range 2 * maxAddresses {
		f.Begin(netip.PrefixFrom(addr, 32))
		addr = addr.Next()
	}
	if kept := addresses(f); kept != maxAddresses {
		t.Errorf("%d addresses are kept, want %d", kept, maxAddresses)
	}
}

func TestSourceOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:50000":              "192.0.2.7/32",
		"[::ffff:192.0.2.7]:50000":     "192.0.2.7/32",
		"[2001:db8:1:2:3:4:5:6]:50000": "2001:db8:1:2::/64",
		"[fe80::1:2%eth0]:50000":       "fe80::/64",
		"@":                            "invalid Prefix",
	} {
		_, network := SourceOf(&http.Request{RemoteAddr: remote})
		if network.String() != want {
			t.Errorf("SourceOf(%q) is %s, want %s", remote, network, want)
		}
	}
}

func TestEqual(t *testing.T) {
	if !Equal("", "") || !Equal("secret", "secret") || Equal("secret", "secre") || Equal("secret", "Secret") {
		t.Error("Equal differs from ==")
	}
}
