package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// conn is a keep-alive connection for one request at a time. It implements only the HTTP
// that Table services send.
type conn struct {
	t    *target
	nc   net.Conn
	r    *bufio.Reader
	sign *signer
	out  []byte

	response response

	// latencies has the latency of each request while timed is set.
	timed     bool
	latencies []time.Duration
}

// response is the response to a request, valid until the next request.
type response struct {
	status int
	body   []byte
	// nextPartition and nextRow are the key of the next page, empty at the end.
	nextPartition, nextRow string

	length  int // of the body, -1 if it is chunked
	closing bool
}

// request is a request of a workload. Its path is relative to the account.
type request struct {
	method, path, query string
	contentType         string
	body                []byte
}

const (
	dialTimeout     = 10 * time.Second
	responseTimeout = 2 * time.Minute
	maxBody         = 64 << 20
)

func dial(t *target) (*conn, error) {
	c := &conn{t: t, sign: newSigner(t)}
	return c, c.connect()
}

func (c *conn) connect() error {
	dialer := &net.Dialer{Timeout: dialTimeout}
	dial := dialer.Dial
	if c.t.tls {
		dial = func(network, address string) (net.Conn, error) {
			return tls.DialWithDialer(dialer, network, address, &tls.Config{InsecureSkipVerify: c.t.insecure})
		}
	}
	nc, err := dial("tcp", c.t.host)
	if err != nil {
		return err
	}
	c.nc, c.r = nc, bufio.NewReaderSize(nc, 64<<10)
	return nil
}

func (c *conn) close() { c.nc.Close() }

// do sends a request and reads its response.
func (c *conn) do(q request) error {
	now := time.Now()
	c.sign.tick(now)
	path := c.t.base + "/" + q.path
	out := append(c.out[:0], q.method...)
	out = append(out, ' ')
	out = append(out, path...)
	if q.query != "" {
		out = append(out, '?')
		out = append(out, q.query...)
	}
	out = append(out, " HTTP/1.1\r\nHost: "...)
	out = append(out, c.t.host...)
	out = append(out, "\r\nAuthorization: "...)
	out = append(out, c.sign.authorization(path)...)
	out = append(out, "\r\nx-ms-date: "...)
	out = append(out, c.sign.date...)
	out = append(out, "\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\nAccept: application/json;odata=minimalmetadata\r\n"...)
	if q.body != nil {
		out = append(out, "Prefer: return-no-content\r\nContent-Type: "...)
		out = append(out, q.contentType...)
		out = append(out, "\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(q.body)), 10)
		out = append(out, "\r\n"...)
	}
	out = append(out, "\r\n"...)
	out = append(out, q.body...)
	c.out = out
	if err := c.nc.SetDeadline(now.Add(responseTimeout)); err != nil {
		return err
	}
	if _, err := c.nc.Write(out); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return fmt.Errorf("%s %s: %w", q.method, path, err)
	}
	if c.timed {
		c.latencies = append(c.latencies, time.Since(now))
	}
	return nil
}

// read reads a response. It connects again if the service closes the connection.
func (c *conn) read() error {
	a := &c.response
	*a = response{body: a.body[:0], length: -1}
	line, err := c.line()
	if err != nil {
		return err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return fmt.Errorf("not a response: %q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fmt.Errorf("not a response: %q", line)
	}
	chunked := false
	for {
		if line, err = c.line(); err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		if err := a.header(line, &chunked); err != nil {
			return err
		}
	}
	switch {
	case chunked:
		err = c.readChunks()
	case a.length > 0:
		err = c.readBody(a.length)
	case a.length < 0 && a.status != 204:
		err = errors.New("a response without its length")
	}
	if err == nil && a.closing {
		c.nc.Close()
		err = c.connect()
	}
	return err
}

// header parses a line of the header.
func (a *response) header(line []byte, chunked *bool) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return fmt.Errorf("not a header: %q", line)
	}
	value = bytes.TrimSpace(value)
	var err error
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		if a.length, err = strconv.Atoi(string(value)); err != nil || a.length < 0 || a.length > maxBody {
			return fmt.Errorf("not a length: %q", line)
		}
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		*chunked = bytes.EqualFold(value, []byte("chunked"))
	case bytes.EqualFold(name, []byte("Connection")):
		a.closing = bytes.EqualFold(value, []byte("close"))
	case bytes.EqualFold(name, []byte("x-ms-continuation-NextPartitionKey")):
		a.nextPartition = string(value)
	case bytes.EqualFold(name, []byte("x-ms-continuation-NextRowKey")):
		a.nextRow = string(value)
	}
	return nil
}

// line returns the next line without its end, valid until the next read.
func (c *conn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// readBody appends n bytes to the body.
func (c *conn) readBody(n int) error {
	b := c.response.body
	if len(b)+n > maxBody {
		return errors.New("the response is too long")
	}
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, 2*(len(b)+n)), b...)
	}
	c.response.body = b[:len(b)+n]
	_, err := io.ReadFull(c.r, c.response.body[len(b):])
	return err
}

func (c *conn) readChunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := strings.Cut(string(line), ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		if err != nil {
			return fmt.Errorf("not a chunk: %q", line)
		}
		if err := c.readBody(int(n)); err != nil {
			return err
		}
		if line, err = c.line(); err != nil {
			return err
		}
		if len(line) != 0 {
			return fmt.Errorf("a chunk is longer than its size: %q", line)
		}
		if n == 0 {
			return nil
		}
	}
}

// want returns an error with the body if the response has another status.
func (a *response) want(status int) error {
	if a.status == status {
		return nil
	}
	return fmt.Errorf("status %d instead of %d: %.500s", a.status, status, a.body)
}

// continuation returns the query parameters of the next page, or "" after the last one.
func (a *response) continuation() string {
	if a.nextPartition == "" {
		return ""
	}
	q := "NextPartitionKey=" + url.QueryEscape(a.nextPartition)
	if a.nextRow != "" {
		q += "&NextRowKey=" + url.QueryEscape(a.nextRow)
	}
	return q
}
