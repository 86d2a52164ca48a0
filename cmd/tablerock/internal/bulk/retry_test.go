package bulk

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
)

// site is a server of HTTP in memory. It refuses as many connections as refuse says.
type site struct {
	conns  chan net.Conn
	refuse int
	dials  int
}

func (s *site) Accept() (net.Conn, error) {
	c, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (s *site) Close() error {
	close(s.conns)
	return nil
}

func (s *site) Addr() net.Addr { return &net.UnixAddr{} }

func (s *site) dial(context.Context, string, string) (net.Conn, error) {
	s.dials++
	if s.dials <= s.refuse {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	s.conns <- server
	return client, nil
}

// open serves the site, and returns a store of it that repeats operations.
func (s *site) open(t *testing.T, serve http.HandlerFunc) *Retrying {
	t.Helper()
	s.conns = make(chan net.Conn)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		serve(w, r)
	})}
	go func() { _ = srv.Serve(s) }()
	opened, err := remote.Open(remote.Endpoint{URL: "http://site/shop", Account: "shop", Key: "a2V5"}, remote.Options{Dial: s.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = opened.Close(), srv.Close() })
	return &Retrying{opened}
}

func created(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// TestFirstContact checks that the first operation ends soon at an address without a Table
// server, and that it is repeated if it may have reached one.
func TestFirstContact(t *testing.T) {
	requests := 0
	cutUntil := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests <= n {
				panic(http.ErrAbortHandler)
			}
			created(w, r)
		}
	}
	for name, c := range map[string]struct {
		refuse int
		serve  http.HandlerFunc
		want   error
		dials  int
	}{
		"refused connections": {1 << 30, created, store.ErrUnavailable, 1},
		"another server": {0, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Unsupported method", http.StatusNotImplemented)
		}, store.ErrOutcomeUnknown, firstTries},
		"a page":                     {0, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, store.ErrOutcomeUnknown, firstTries},
		"connections that end":       {0, cutUntil(1 << 30), store.ErrOutcomeUnknown, firstTries},
		"two connections that end":   {0, cutUntil(2), nil, firstTries},
		"a table that exists":        {0, exists, store.ErrTableExists, 1},
		"a server that is available": {0, created, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests = 0
				s := &site{refuse: c.refuse}
				begin := time.Now()
				err := s.open(t, c.serve).CreateTable(t.Context(), "People")
				if !errors.Is(err, c.want) || s.dials != c.dials {
					t.Errorf("%v after %d connections, want %v after %d", err, s.dials, c.want, c.dials)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func exists(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("x-ms-error-code", "TableAlreadyExists")
	w.WriteHeader(http.StatusConflict)
}

// TestRestart checks that operations are repeated while a server that has answered restarts, also
// if what it answered was an error.
func TestRestart(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{"created": created, "exists": exists} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{}
				r := s.open(t, first)
				if err := r.CreateTable(t.Context(), "People"); err != nil && !errors.Is(err, store.ErrTableExists) {
					t.Fatal(err)
				}
				s.refuse = s.dials + tries - 1
				_, err := r.Apply(t.Context(), "People", store.InsertOrReplace(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}))
				if s.dials != s.refuse+1 || errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%v after %d connections, of which %d were refused", err, s.dials, s.refuse)
				}
			})
		})
	}
}
