package tabletest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/store"
)

// Server is a running server. Do not change its fields. All methods may be called
// concurrently, but call Import and Reset from the goroutine of the test, since they may
// call t.Fatalf.
type Server struct {
	// Endpoint is the URL of the account, such as
	// http://127.0.0.1:41234/devstoreaccount1.
	Endpoint string
	// Account and Key are the credentials of the clients.
	Account string
	Key     string // in base64
	// Store is the database of the server. A test can use it to write and read
	// entities without the protocol.
	Store store.Store

	t       testing.TB
	options *options
	client  *http.Client
	db      *database

	// gate is locked shared by each request, and exclusively by Snapshot and Reset.
	gate sync.RWMutex
	// +checklocks:gate
	handler http.Handler
}

// The default account, with the published development key.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// drainTime limits the time of requests after the end of the test.
const drainTime = 5 * time.Second

// Option is an option of New.
type Option func(*options)

type options struct {
	account, key string
	observe      func(server.Event)
	now          func() time.Time
	timestamps   func() time.Time
	log          requestLog
	rules        []faults.Rule
	seed         uint64
}

// WithAccount replaces the development account by one with this name, of 3 to 24 lower-case
// letters and digits, and with this key in base64, of at least 32 bytes.
func WithAccount(name, key string) Option {
	return func(o *options) { o.account, o.key = name, key }
}

// WithObserver calls f after each request, from the goroutine of the request. A request that
// the answer CutBefore of WithFaults ends is not one of them. f must not send requests to the
// server: beside Snapshot or Reset, which wait for f, they wait for ever.
func WithObserver(f func(server.Event)) Option { return func(o *options) { o.observe = f } }

// WithClock sets the clock by which the server checks signatures and tokens, and with
// which Client signs. Other clients sign with the time of the system.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithTimestamps sets the clock of the Timestamps of entities, and so of their ETags. A
// Timestamp is the time of the clock, or later than the previous one by 100 ns, if the clock
// did not advance. The creation of a table takes Timestamps, too. now is called when New begins
// and once for each write, by the goroutine that writes, which is that of the request. A time
// after the year 9999 fails the test.
func WithTimestamps(now func() time.Time) Option { return func(o *options) { o.timestamps = now } }

// WithFaults makes requests fail by rules. The same seed gives the same failures: see
// package faults.
func WithFaults(seed uint64, rules ...faults.Rule) Option {
	return func(o *options) { o.seed, o.rules = seed, append(o.rules, rules...) }
}

// New starts a server and stops it when the test ends. It calls t.Fatalf if the
// server cannot start. If the test fails, New prints the requests that the server got,
// without keys, contents and credentials.
//
// A fuzz test can give New its F and call Reset and Import in the fuzz target.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	if f, ok := t.(*testing.F); ok {
		t = fuzzTest{f}
	}
	o := &options{account: developmentAccount, key: developmentKey, now: systemNow, timestamps: systemNow}
	for _, set := range opts {
		set(o)
	}
	t.Cleanup(func() { o.log.print(t) })
	db, err := newDatabase(t, o.account, o.timestamps)
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
	credential, err := sharedkey.NewCredential(o.account, o.key)
	if err != nil {
		t.Fatalf("tabletest: %v", err)
	}
	transport := &http.Transport{}
	s := &Server{
		Account: o.account, Key: o.key, Store: db, t: t, options: o, db: db, handler: h,
		client: &http.Client{Transport: &signer{credential, transport, o.now}},
	}
	s.Endpoint = "http://" + s.listen() + "/" + o.account
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// listen serves until the test ends. It returns the address.
func (s *Server) listen() string {
	t := s.t
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("tabletest: %v", err)
	}
	f := front.New(l, http.HandlerFunc(s.serve), front.Options{})
	served := make(chan error, 1)
	go func() { served <- f.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if err := errors.Join(f.Shutdown(ctx), <-served); err != nil {
			t.Errorf("tabletest: stop the server: %v", err)
		}
	})
	return l.Addr().String()
}

// serve serves a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	s.handler.ServeHTTP(w, r)
}

// handler returns the handler of the protocol over st.
func (o *options) handler(st store.Store) (http.Handler, error) {
	s, err := server.New(server.Options{
		Accounts: []server.Account{{Name: o.account, Keys: []string{o.key}, Store: st}},
		Observe:  o.observed, Now: o.now,
	})
	if err != nil || o.rules == nil {
		return s, err
	}
	return faults.New(s, s, o.rules, faults.Options{Seed: o.seed, Now: o.now, Observe: o.log.fault})
}

// observed is called after each request.
func (o *options) observed(e server.Event) {
	o.log.request(e)
	if o.observe != nil {
		o.observe(e)
	}
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
