package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// exchange is a request and its response, of which the SDK does not see the address of the
// entity and the bodies.
type exchange struct {
	link        string // the escaped address below that of the account, "" for that of the SDK
	body        []byte // nil for that of the SDK
	contentType string // of body
	prefer      string // "" for that of the SDK
	want        []int  // the status codes of a write that the server executed

	state  state
	wrong  string // why no request to this address can succeed, "" if one may
	status int    // of the last response
	reply  []byte // its body
	header http.Header
	// sent is whether the server may execute an attempt, which is not so in the delay before
	// the next one.
	sent atomic.Bool
}

// state is what is known of the last attempt of a request.
type state uint8

const (
	unsent      state = iota // the server has not received it
	interrupted              // the server has not received it, because there was no connection to it yet
	cut                      // the server may have executed it
	answered                 // there is a status
)

type exchangeKey struct{}

// wire is the policy that replaces addresses and bodies.
type wire struct{ base string } // base is the escaped path of the account

// Do sends the content of the exchange in the context, if there is one, and takes the body
// of the response.
func (w *wire) Do(req *policy.Request) (*http.Response, error) {
	x, ok := req.Raw().Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return req.Next()
	}
	raw := req.Raw()
	if x.link != "" {
		escaped := w.base + "/" + x.link
		path, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, fmt.Errorf("address of the request: %w", err)
		}
		raw.URL.Path, raw.URL.RawPath = path, escaped
	}
	if x.body != nil {
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader(x.body)), x.contentType); err != nil {
			return nil, err
		}
	}
	if x.prefer != "" {
		raw.Header.Set("Prefer", x.prefer)
	}
	resp, err := req.Next()
	if err != nil {
		return resp, err
	}
	x.state = answered // also if no attempt follows one that could be repeated
	x.header = resp.Header
	if x.reply, err = runtime.Payload(resp); err != nil {
		return nil, err
	}
	// The SDK decodes an empty object. It would need minutes for the error that a hostile
	// server can send.
	resp.Body = io.NopCloser(strings.NewReader("{}"))
	return resp, nil
}

// maxReply limits the body of a response: a page is about 4 MiB.
const maxReply = 64 << 20

// transport sends requests by HTTP.
type transport struct {
	http.Transport
	token string // of TokenHeader, "" for none
}

// TokenHeader is the header of the token in Options.
const TokenHeader = "X-Tablerock-Token"

func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error), token string) *transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &transport{token: token, Transport: http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
	}}
}

// Do sends a request and does not follow redirections, which would send credentials to
// another server. Its errors have no URL, whose query can contain a signature.
func (t *transport) Do(r *http.Request) (*http.Response, error) {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		x = &exchange{}
	}
	if t.token != "" {
		r.Header.Set(TokenHeader, t.token)
	}
	x.state, x.wrong, x.status = unsent, "", 0
	x.sent.Store(false)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	x.state = cut
	// GotConn is called before a connection is used, so not for one whose handshake failed or that a
	// proxy refused. The hooks can run after the end of RoundTrip.
	var connected, handshakeFailed atomic.Bool
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			connected.Store(true)
			x.sent.Store(true)
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				handshakeFailed.Store(true)
			}
		},
	}))
	resp, err := t.RoundTrip(r)
	if err != nil {
		var op *net.OpError
		var dns *net.DNSError
		switch {
		case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &dns):
			x.state = unsent
		case !connected.Load():
			x.state = interrupted
			if handshakeFailed.Load() {
				x.wrong = handshakeReason(err)
			}
			if x.wrong != "" {
				x.state = unsent
			}
		case r.URL.Scheme == "http" && isAlert(err):
			x.state, x.wrong = unsent, useHTTPS
		}
		return nil, err
	}
	x.state, x.status = answered, resp.StatusCode
	if r.URL.Scheme == "http" && needsTLS(resp) {
		x.wrong = useHTTPS
	}
	resp.Body = &limited{resp.Body, maxReply}
	return resp, nil
}

var errReplyTooLong = fmt.Errorf("the body of a response has more than %d bytes", maxReply)

// limited is a body that fails after some bytes.
type limited struct {
	io.ReadCloser
	left int
}

// Read reads from the body.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, errReplyTooLong
	}
	return n, err
}
