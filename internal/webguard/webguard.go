// Package webguard protects pages that a browser shows from other pages, and their logins
// from guesses.
package webguard

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// contentPolicy allows only assets of this server. Trusted types make the browser refuse
// HTML made of strings in scripts.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// SetHeaders sets the headers that restrict what a page may do and which pages may use it.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// Guard refuses requests that a page of another origin could have caused.
type Guard struct {
	Secure bool   // browsers connect by TLS
	API    string // a path: links elsewhere may open pages, and nothing below it
	isHost func(name string) bool
}

// New returns a Guard of a server whose names, in lower case, isHost reports. Nil means no
// names. Addresses and localhost are always allowed: anybody's DNS can give a name to this
// machine, but no address.
func New(secure bool, api string, isHost func(name string) bool) *Guard {
	return &Guard{secure, api, isHost}
}

// The errors of Check.
var (
	ErrHost   = errors.New("the Host of the request is not one of this server")
	ErrOrigin = errors.New("pages of other origins have no access")
)

// Check returns ErrHost or ErrOrigin for a request to refuse.
func (g *Guard) Check(r *http.Request) error {
	name := foldHost(r.Host)
	_, err := netip.ParseAddr(name)
	if err != nil && name != "localhost" && (g.isHost == nil || !g.isHost(name)) {
		return ErrHost
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && !g.isNavigation(r) {
		return ErrOrigin
	}
	origin := r.Header.Get("Origin")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if reads && origin == "" || g.sameOrigin(origin, r) {
		return nil
	}
	return ErrOrigin
}

// isNavigation reports whether r opens a page, as a link elsewhere may do.
func (g *Guard) isNavigation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.HasPrefix(r.URL.Path, g.API)
}

func (g *Guard) sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	return u.Scheme == "https" == g.Secure && (u.Scheme == "https" || u.Scheme == "http")
}

// foldHost returns the name in a Host header, without the port, in lower case.
func foldHost(host string) string {
	if at, err := netip.ParseAddrPort(host); err == nil {
		return at.Addr().String()
	}
	if rest, ok := strings.CutPrefix(host, "["); ok {
		return strings.TrimSuffix(rest, "]")
	}
	name, _, _ := strings.Cut(host, ":")
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// Equal compares two secrets in a time that does not depend on them.
func Equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
