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
	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Server is a running server. Do not change its fields. All methods may be called
// concurrently.
type Server struct {
	// Endpoint is the URL of the account, such as
	// http://127.0.0.1:41234/devstoreaccount1.
	Endpoint string
	// Account and Key are the credentials of the clients.
	Account, Key string
	// Store is the database of the server. A test can use it to write and read
	// entities without the protocol.
	Store store.Store

	client *http.Client
}

// The default account, with the published development key.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// smallestSegment is the minimum, since most databases of tests are small.
const smallestSegment = 64 << 10

// cacheBytes is small, since all files are in memory.
const cacheBytes = 4 << 20

// drainTime limits the time of requests after the end of the test.
const drainTime = 5 * time.Second

// Option is an option of New.
type Option func(*options)

type options struct {
	account, key string
	observe      func(server.Event)
	now          func() time.Time
	rules        []faults.Rule
	seed         uint64
}

// WithAccount replaces the development account by one with this name, and with this
// key in base64.
func WithAccount(name, key string) Option {
	return func(o *options) { o.account, o.key = name, key }
}

// WithObserver calls f after each request, from the goroutine of the request.
func WithObserver(f func(server.Event)) Option { return func(o *options) { o.observe = f } }

// WithClock sets the clock by which the server checks signatures and tokens, and with
// which Client signs.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithFaults makes requests fail by rules. The same seed gives the same failures: see
// package faults.
func WithFaults(seed uint64, rules ...faults.Rule) Option {
	return func(o *options) { o.seed, o.rules = seed, append(o.rules, rules...) }
}

// New starts a server and stops it when the test ends. It calls t.Fatalf if the
// server cannot start.
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
	h, err := o.handler(db)
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

// handler returns the handler of the protocol over st.
func (o *options) handler(st store.Store) (http.Handler, error) {
	s, err := server.New(server.Options{
		Accounts: []server.Account{{Name: o.account, Keys: []string{o.key}, Store: st}},
		Observe:  o.observe, Now: o.now,
	})
	if err != nil || o.rules == nil {
		return s, err
	}
	return faults.New(s, s, o.rules, faults.Options{Seed: o.seed, Now: o.now})
}

// ConnectionString returns the connection string for client libraries.
func (s *Server) ConnectionString() string {
	return "DefaultEndpointsProtocol=http;AccountName=" + s.Account + ";AccountKey=" + s.Key + ";TableEndpoint=" + s.Endpoint + ";"
}

// Client returns a client that signs requests with the key of the account, for tests
// that use the protocol without a library. Its idle connections are closed when the
// test ends.
func (s *Server) Client() *http.Client { return s.client }

// signer signs requests and passes them to next.
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
