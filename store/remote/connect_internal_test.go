package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var insert = store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}})

// TestProxyRefuses sends a write through a proxy that does not connect to the server, and one that
// cannot be reached. The server has no request.
func TestProxyRefuses(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(refuses.Close)
	for _, proxy := range []string{refuses.URL, "http://127.0.0.1:1"} {
		s, err := Open(Endpoint{URL: "https://shop.invalid/shop", Account: "shop", Key: developmentKey}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
		if _, err = s.Apply(t.Context(), "People", insert); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("proxy %s: %v, want ErrUnavailable", proxy, err)
		}
	}
}

// TestContextEndsInDial ends the ctx of a write before there is a connection. Nothing happened.
func TestContextEndsInDial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s, err := Open(Endpoint{URL: "http://127.0.0.1:1/shop", Account: "shop", Key: developmentKey}, Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err = s.Apply(ctx, "People", insert); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
