// Package health asks a server whether it is ready.
package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// The address of the admin listener of a server with default ports, and its readiness URL.
const (
	DefaultAdmin = "127.0.0.1:10012"
	readyPath    = "/readyz"
	readyURL     = "http://" + DefaultAdmin + readyPath
)

// maxHealthText limits the bytes of a response that are printed.
const maxHealthText = 200

// AdminURL returns the readiness URL of a server with that --admin.
func AdminURL(admin string) (*url.URL, error) {
	if admin == "off" {
		return nil, fmt.Errorf("--admin or TABLEROCK_ADMIN is off: give the URL of a server; an example is %s", readyURL)
	}
	if host, port, err := net.SplitHostPort(admin); err == nil {
		switch ip := net.ParseIP(host); {
		case host == "", ip.Equal(net.IPv4zero):
			host = "127.0.0.1"
		case ip.Equal(net.IPv6zero):
			host = "::1"
		}
		admin = net.JoinHostPort(host, port)
	}
	return URL(admin)
}

// URL returns the URL to request for a URL or a HOST:PORT, perhaps with a path.
func URL(text string) (*url.URL, error) {
	at, isAddress := text, !strings.Contains(text, "://")
	if isAddress {
		at = "http://" + text
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || isAddress && u.Port() == "" {
		return nil, fmt.Errorf("%q is not the URL of a server or HOST:PORT; an example is %s", text, readyURL)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = readyPath
	}
	return u, nil
}

// Check sends one request. show makes a text printable.
func Check(ctx context.Context, u *url.URL, show func(string) string) error {
	shown := u.Redacted()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("%q: %v", shown, err)
	}
	response, err := client(u).Do(r)
	if urlError := (*url.Error)(nil); errors.As(err, &urlError) {
		err = urlError.Err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		// The error is not wrapped, so that the exit code is 1 for every reason.
		return fmt.Errorf("%s does not respond: %s; start it with \"tablerock serve\", or give the URL of its admin listener", shown, err.Error())
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, maxHealthText))
	text := show(strings.TrimSpace(string(b)))
	if response.StatusCode == http.StatusBadRequest && u.Scheme == "http" && strings.Contains(text, "HTTPS server") {
		secure := *u
		secure.Scheme = "https"
		return Check(ctx, &secure, show)
	}
	if err == nil && response.StatusCode/100 == 4 {
		return fmt.Errorf("%s returned %s: %s; use /readyz of the admin listener, by default %s", shown, response.Status, text, readyURL)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s: %s", shown, response.Status, text)
	}
	return nil
}

// client returns the client for a URL. A certificate names the host that clients use, so it
// is not compared with an address of loopback.
func client(u *url.URL) *http.Client {
	if ip := net.ParseIP(u.Hostname()); u.Scheme != "https" || !ip.IsLoopback() {
		return http.DefaultClient
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}
