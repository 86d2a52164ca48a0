package tabletest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Server is a running server. Its fields must not be changed. All methods may be
// called concurrently.
type Server struct {
	// Endpoint is the URL of the account, such as
	// http://127.0.0.1:41234/devstoreaccount1.
	Endpoint string
	// Account and Key are what clients sign requests with.
	Account, Key string
	// Store is the database behind the server, for looking at it, or preparing it,
	// past the protocol.
	Store store.Store

	client *http.Client
}

// The account of all servers, with the published key of development.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// smallestSegment keeps the memory of a server near that of what is in it.
const smallestSegment = 64 << 10

// cacheBytes bounds what is kept of files that are in memory already.
const cacheBytes = 4 << 20

// drainTime is how long a request may go on once the test is over.
const drainTime = 5 * time.Second

// Option changes a server that New makes.
type Option func(*options)

type options struct {
	account, key string
	observe      func(server.Event)
	now          func() time.Time
}

// WithAccount serves an account of this name and key, in base64, and not that of
// development.
func WithAccount(name, key string) Option {
	return func(o *options) { o.account, o.key = name, key }
}

// WithObserver calls f after each request, from the request's goroutine.
func WithObserver(f func(server.Event)) Option { return func(o *options) { o.observe = f } }

// WithClock takes the time that signatures and tokens are judged by, and that
// Client signs with, from now.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// New starts a server that ends with the test. It ends the test at once if that
// fails.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	o := options{account: developmentAccount, key: developmentKey, now: systemNow}
	for _, set := range opts {
		set(&o)
	}
	db, err := engine.Open(o.account, engine.Options{FS: vfs.NewMem(), SegmentBytes: smallestSegment, CacheBytes: cacheBytes})
	if err != nil {
		t.Fatalf("tabletest: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("tabletest: close the database: %v", err)
		}
	})
	h, err := server.New(server.Options{
		Accounts: []server.Account{{Name: o.account, Keys: []string{o.key}, Store: db}},
		Observe:  o.observe, Now: o.now,
	})
	if err != nil {
		t.Fatalf("tabletest: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("tabletest: %v", err)
	}
	f := front.New(l, h, front.Options{})
	served := make(chan error, 1)
	go func() { served <- f.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if err := errors.Join(f.Shutdown(ctx), <-served); err != nil {
			t.Errorf("tabletest: stop the server: %v", err)
		}
	})
	credential, err := sharedkey.NewCredential(o.account, o.key)
	if err != nil {
		t.Fatalf("tabletest: %v", err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Server{
		Endpoint: "http://" + l.Addr().String() + "/" + o.account, Account: o.account, Key: o.key, Store: db,
		client: &http.Client{Transport: &signer{credential, transport, o.now}},
	}
}

// ConnectionString returns what every client library takes as a connection
// string.
func (s *Server) ConnectionString() string {
	return "DefaultEndpointsProtocol=http;AccountName=" + s.Account + ";AccountKey=" + s.Key + ";TableEndpoint=" + s.Endpoint + ";"
}

// Client returns a client that signs what it sends with the account's key, for
// tests that speak the protocol without a library. Its idle connections are
// closed with the server.
func (s *Server) Client() *http.Client { return s.client }

// signer signs requests on their way.
type signer struct {
	credential *sharedkey.Credential
	next       http.RoundTripper
	now        func() time.Time
}

// RoundTrip sends a signed copy of r.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if err := s.credential.SignRequest(r, s.now()); err != nil {
		return nil, err
	}
	return s.next.RoundTrip(r)
}
