package remote

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/store"
)

// AddressError means that the server cannot be reached by the URL of the endpoint: it has
// another scheme, or its certificate is not trusted. The request was not executed, and a
// repeated one fails too. errors.Is finds store.ErrUnavailable.
type AddressError struct {
	URL  string // of the endpoint
	What string // the reason and, if that is known, what to change
}

// Error returns the URL and the reason.
func (e *AddressError) Error() string {
	return fmt.Sprintf("%v: %s: %s", store.ErrUnavailable, e.URL, e.What)
}

// Unwrap returns store.ErrUnavailable.
func (e *AddressError) Unwrap() error { return store.ErrUnavailable }

const useHTTPS = "the server speaks TLS: use https://"

// handshakeReason returns why a TLS handshake failed with err, "" if another one may succeed.
func handshakeReason(err error) string {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.As(err, &record):
		return "the server does not speak TLS: use http://"
	case errors.As(err, &certificate):
		return "the certificate is not trusted: " + certificate.Err.Error()
	case errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error"):
		return "the TLS handshake failed: " + alert.Err.Error()
	}
	return ""
}

// isAlert reports whether err means that the response begins with an alert of TLS: the server
// did not understand the request.
func isAlert(err error) bool {
	return strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`)
}

// plainRefusals are in the bodies that Go, nginx and Apache answer to a request without TLS.
var plainRefusals = [][]byte{
	[]byte("Client sent an HTTP request to an HTTPS server"), []byte("plain HTTP request was sent to HTTPS port"), []byte("speaking plain HTTP to an SSL-enabled"),
}

// needsTLS reports whether a response to a request without TLS says that the server expects TLS.
// It reads the first bytes of the body at once, because such a server can reset the connection
// and the rest of the body is then lost.
func needsTLS(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest {
		return false
	}
	body := resp.Body
	start, _ := io.ReadAll(io.LimitReader(body, 1<<10)) // body returns the error again
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), body), body}
	return slices.ContainsFunc(plainRefusals, func(text []byte) bool { return bytes.Contains(start, text) })
}
