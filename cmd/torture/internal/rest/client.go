package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// JSON is the content type of an entity.
const JSON = "application/json"

// Client sends requests to an account of a server. Its methods may be called concurrently.
type Client struct {
	URL  string // of the account, without a final slash
	cred *sharedkey.Credential
	http *http.Client
}

// NewClient returns a client of an account. key is in base64. A request fails after timeout.
func NewClient(url, account, key string, timeout time.Duration) (*Client, error) {
	cred, err := sharedkey.NewCredential(account, key)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	return &Client{strings.TrimSuffix(url, "/"), cred, &http.Client{Timeout: timeout, Transport: transport}}, nil
}

// NewConnection returns a client of the account that a connection string names.
func NewConnection(connection string, timeout time.Duration) (*Client, error) {
	settings := map[string]string{}
	for _, setting := range strings.Split(connection, ";") {
		name, text, _ := strings.Cut(setting, "=")
		settings[name] = text
	}
	return NewClient(settings["TableEndpoint"], settings["AccountName"], settings["AccountKey"], timeout)
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is a request. Path is relative to the account.
type Request struct {
	Method, Path, ContentType, IfMatch string
	Accept                             string // default: JSON without metadata
	Body                               []byte
}

// Response is a response with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem returns the status and the beginning of the body.
func (r *Response) Problem() string {
	return fmt.Sprintf("%d %.300s", r.Status, bytes.TrimSpace(r.Body))
}

var code = regexp.MustCompile(`"code":"(\w+)"`)

// Code returns the first error code of the body, "" if it has none.
func (r *Response) Code() string {
	if m := code.FindSubmatch(r.Body); m != nil {
		return string(m[1])
	}
	return ""
}

// Do sends a request. The error is that of the connection; every status is a response.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	q, err := http.NewRequestWithContext(ctx, r.Method, c.URL+"/"+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("X-Ms-Version", "2019-02-02")
	q.Header.Set("DataServiceVersion", "3.0")
	q.Header.Set("Accept", r.Accept)
	if r.Accept == "" {
		q.Header.Set("Accept", "application/json;odata=nometadata")
	}
	if r.ContentType != "" {
		q.Header.Set("Content-Type", r.ContentType)
		q.Header.Set("Prefer", "return-no-content")
	}
	if r.IfMatch != "" {
		q.Header.Set("If-Match", r.IfMatch)
	}
	if err := c.cred.SignRequest(q, time.Now()); err != nil {
		return nil, err
	}
	a, err := c.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	return &Response{a.StatusCode, a.Header, text}, nil
}

// NotSent reports whether an error of Do proves that the server got no request.
func NotSent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

var (
	refusedPart = regexp.MustCompile(`HTTP/1\.1 ([3-5][0-9][0-9]) `)
	partETag    = regexp.MustCompile(`(?mi)^ETag: (\S+)\r?$`)
)

// Batch sends one transaction. Each operation is a Request whose Path is relative to the
// account. The status of the response is that of the first failing operation.
func (c *Client) Batch(ctx context.Context, operations []Request) (*Response, error) {
	body := []byte("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n")
	for _, o := range operations {
		body = append(body, "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"...)
		body = fmt.Appendf(body, "%s %s/%s HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n", o.Method, c.URL, o.Path)
		if o.ContentType != "" {
			body = fmt.Appendf(body, "Content-Type: %s\r\nPrefer: return-no-content\r\n", o.ContentType)
		}
		if o.IfMatch != "" {
			body = fmt.Appendf(body, "If-Match: %s\r\n", o.IfMatch)
		}
		body = append(append(append(body, "\r\n"...), o.Body...), "\r\n"...)
	}
	body = append(body, "--changeset_c--\r\n--batch_b--\r\n"...)
	a, err := c.Do(ctx, Request{Method: http.MethodPost, Path: "$batch", ContentType: "multipart/mixed; boundary=batch_b", Body: body})
	if err != nil || a.Status != http.StatusAccepted {
		return a, err
	}
	if m := refusedPart.FindSubmatch(a.Body); m != nil {
		a.Status, err = strconv.Atoi(string(m[1]))
	}
	return a, err
}

// PartETags returns the ETags of the operations of a batch, in their order.
func (r *Response) PartETags() (etags []string) {
	for _, m := range partETag.FindAllSubmatch(r.Body, -1) {
		etags = append(etags, string(m[1]))
	}
	return etags
}
