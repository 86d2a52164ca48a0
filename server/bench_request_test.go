package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/vfs"
)

// benchEntity returns the JSON of an entity of ten properties and 1 KiB.
func benchEntity(row int) string {
	return fmt.Sprintf(`{"PartitionKey":"p00417","RowKey":"%09d","Rating":417,"Active":true,"Price":71023.25,`+
		`"Total@odata.type":"Edm.Int64","Total":"4611686018427387904","Made@odata.type":"Edm.DateTime","Made":"2026-02-03T04:05:06.7891234Z",`+
		`"Id@odata.type":"Edm.Guid","Id":"a455c695-0000-4000-8000-81d3367e5a34","City":"%s","Street":"%s","Name":"%s","Note":"%s"}`,
		row, strings.Repeat("city", 5), strings.Repeat("street x", 5), strings.Repeat("name ", 6), strings.Repeat("note of a word ", 843/15))
}

// newBenchHandler returns a server over an engine in memory with the table People.
func newBenchHandler(tb testing.TB) (http.Handler, *sharedkey.Credential) {
	tb.Helper()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	if err := db.CreateTable(tb.Context(), "People"); err != nil {
		tb.Fatal(err)
	}
	return newBenchServer(tb, db)
}

// benchRequests are the requests of the benchmarks.
var benchRequests = []struct {
	name, method, path string
	header             string
	status             int
	allocs             float64 // at most, of the handler
}{
	{"get", "GET", "/People(PartitionKey='p00417',RowKey='000000000')", "", http.StatusOK, 7},
	{"insert", "POST", "/People", "Prefer: return-no-content\r\n", http.StatusNoContent, 8},
	{"insert/echo", "POST", "/People", "", http.StatusCreated, 10},
	{"replace", "PUT", "/People(PartitionKey='p00417',RowKey='000000000')", "", http.StatusNoContent, 8},
}

// benchRequest returns the head of a signed request, without the empty line.
func benchRequest(tb testing.TB, c *sharedkey.Credential, method, path, header string) string {
	tb.Helper()
	path = "/" + wireAccount + path
	date := testTime.Format(http.TimeFormat)
	authorization, err := c.SharedKeyLite(&sharedkey.Request{Method: method, Path: path, Header: http.Header{"X-Ms-Date": {date}}})
	if err != nil {
		tb.Fatal(err)
	}
	return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:10002\r\nAuthorization: " + authorization + "\r\nx-ms-date: " + date +
		"\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\nAccept: application/json;odata=minimalmetadata\r\n" + header
}

// withBody completes a request with a body.
func withBody(request, body string) string {
	return fmt.Sprintf("%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", request, len(body), body)
}

// handlerCalls returns a function that gives a handler, over an engine in memory, a request: each call of it another row.
func handlerCalls(tb testing.TB, method, path, header string, status int) (call func()) {
	tb.Helper()
	h, credential := newBenchHandler(tb)
	text := benchRequest(tb, credential, method, path, header)
	insert := benchRequest(tb, credential, "POST", "/People", "")
	parse := func(text string) *http.Request {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			tb.Fatal(err)
		}
		r.RemoteAddr = "127.0.0.1:40000"
		return r
	}
	w := &discard{header: make(http.Header)}
	h.ServeHTTP(w, parse(withBody(insert, benchEntity(0))))
	body := []byte(benchEntity(0))
	if method == http.MethodGet {
		text += "\r\n"
	} else {
		text = withBody(text, string(body))
	}
	r := parse(text)
	source, row := bytes.NewReader(body), rowIn(body)
	n := int64(0)
	return func() {
		if method != http.MethodGet {
			n++
			putRow(row, n)
			source.Reset(body)
			r.Body = io.NopCloser(source)
		}
		clear(w.header)
		h.ServeHTTP(w, r)
		if w.status != status {
			tb.Fatalf("status %d, want %d", w.status, status)
		}
	}
}

// BenchmarkHandler measures the handler alone.
func BenchmarkHandler(b *testing.B) {
	for _, c := range benchRequests {
		b.Run("op="+c.name, func(b *testing.B) {
			call := handlerCalls(b, c.method, c.path, c.header, c.status)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// TestHandlerAllocations counts the allocations of a request. The engine allocates in the background now and then.
func TestHandlerAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range benchRequests {
		call := handlerCalls(t, c.method, c.path, c.header, c.status)
		least := math.Inf(1)
		for try := 0; least > c.allocs && try < 10; try++ {
			least = min(least, testing.AllocsPerRun(100, call))
		}
		if least > c.allocs {
			t.Errorf("%s allocates %v times, want at most %v", c.name, least, c.allocs)
		}
	}
}

// benchClients is the number of connections of BenchmarkSocket for each processor.
const benchClients = 32

// BenchmarkSocket measures requests on many loopback connections, including the clients.
func BenchmarkSocket(b *testing.B) {
	for _, c := range benchRequests {
		b.Run("op="+c.name, func(b *testing.B) {
			h, credential := newBenchHandler(b)
			text := benchRequest(b, credential, c.method, c.path, c.header)
			insert := benchRequest(b, credential, "POST", "/People", "")
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			f := front.New(l, h, front.Options{})
			done := make(chan error, 1)
			go func() { done <- f.Serve() }()
			b.Cleanup(func() {
				if err := errors.Join(f.Shutdown(context.Background()), <-done); err != nil {
					b.Error(err)
				}
			})
			first := dialBench(b, l.Addr())
			if err := first.send([]byte(withBody(insert, benchEntity(0))), http.StatusCreated); err != nil {
				b.Fatal(err)
			}
			var rows atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(benchClients)
			b.RunParallel(func(pb *testing.PB) {
				conn := dialBench(b, l.Addr())
				request := []byte(text + "\r\n")
				if c.method != http.MethodGet {
					request = []byte(withBody(text, benchEntity(0)))
				}
				row := rowIn(request)
				for pb.Next() {
					if c.method != http.MethodGet {
						putRow(row, rows.Add(1))
					}
					if err := conn.send(request, c.status); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// rowIn returns the bytes of the RowKey of a benchEntity in a request.
func rowIn(request []byte) []byte {
	const before = `"RowKey":"`
	if i := bytes.Index(request, []byte(before)); i >= 0 {
		return request[i+len(before):][:9]
	}
	return nil
}

// putRow writes n to the RowKey.
func putRow(row []byte, n int64) {
	for i := len(row) - 1; i >= 0; i-- {
		row[i] = '0' + byte(n%10)
		n /= 10
	}
}

// benchConn is a client connection that parses as little as possible.
type benchConn struct {
	net.Conn
	responses *bufio.Reader
}

func dialBench(b *testing.B, at net.Addr) *benchConn {
	b.Helper()
	conn, err := net.Dial("tcp", at.String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return &benchConn{conn, bufio.NewReader(conn)}
}

// send sends a request and reads the response.
func (c *benchConn) send(request []byte, status int) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.responses.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && string(line[len("HTTP/1.1 "):][:3]) != strconv.Itoa(status) {
			return fmt.Errorf("%s, want %d", line, status)
		}
		if len(line) == len("\r\n") {
			_, err := c.responses.Discard(length)
			return err
		}
		if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(digits))); err != nil {
				return err
			}
		}
	}
}
