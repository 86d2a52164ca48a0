package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// The account of every server of these tests, with the published development key.
const (
	wireAccount = "devstoreaccount1"
	wireKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// manualClock is a clock that only advance moves.
type manualClock struct{ at atomic.Int64 }

func (c *manualClock) Now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (c *manualClock) AfterFunc(time.Duration, func()) func() bool {
	return func() bool { return true }
}
func (c *manualClock) advance(d time.Duration) { c.at.Add(int64(d)) }

// wire is a server on a socket, over an engine in memory. Its clock starts at testTime, and
// only clock.advance moves it.
type wire struct {
	t          testing.TB
	addr       string
	store      store.Store
	clock      *manualClock
	credential *sharedkey.Credential
	tls        *tls.Config // of clients, nil for plain HTTP

	mu     sync.Mutex
	events []server.Event // +checklocks:mu
}

// newWire starts a server of the engine or of PostgreSQL, or of the store that wrap returns. If secured is
// not nil, it has the certificate.
func newWire(t testing.TB, wrap func(store.Store) store.Store, secured *tls.Config) *wire {
	t.Helper()
	w := &wire{t: t, clock: &manualClock{}}
	w.clock.at.Store(testTime.UnixNano())
	w.store = newStore(t, func() store.Store {
		db, err := engine.Open("db", engine.Options{FS: vfs.NewMem(), SegmentBytes: 64 << 10, CacheBytes: 4 << 20, Testing: engine.TestHooks{Clock: w.clock}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	})
	if wrap != nil {
		w.store = wrap(w.store)
	}
	var err error
	if w.credential, err = sharedkey.NewCredential(wireAccount, wireKey); err != nil {
		t.Fatal(err)
	}
	h, err := server.New(server.Options{
		Accounts: []server.Account{{Name: wireAccount, Keys: []string{wireKey}, Store: w.store}, {Name: "other", Keys: []string{testKey}, Store: w.store}},
		OAuth:    true, Now: w.clock.Now,
		Observe: func(e server.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = l.Addr().String()
	f := front.New(l, h, front.Options{TLS: secured})
	served := make(chan error, 1)
	go func() { served <- f.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(f.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return w
}

// takeEvents returns the events since the last call.
func (w *wire) takeEvents() []server.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.events
	w.events = nil
	return all
}

// connTimeout is the timeout of a connection.
const connTimeout = time.Minute

// dial opens a connection, which is closed at the end of the test.
func (w *wire) dial() net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.tls != nil {
		conn = tls.Client(conn, w.tls)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(connTimeout)); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// exchange sends the bytes of a request on a new connection, and returns the bytes of the
// response and the parsed response. Without a complete response, raw has the bytes before
// the connection was closed, and res is nil.
func (w *wire) exchange(request string) (raw []byte, res *http.Response) {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, request) // the server may respond before it has read all
	}()
	raw, res = readResponse(conn, request)
	_ = conn.Close()
	<-sent
	return raw, res
}

// readResponse reads one response.
func readResponse(conn io.Reader, request string) ([]byte, *http.Response) {
	var raw bytes.Buffer
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &raw)), &http.Request{Method: method})
	if err != nil {
		return raw.Bytes(), nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil && res.ContentLength >= 0 {
		return raw.Bytes(), nil // the response is incomplete
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return raw.Bytes(), res
}
