package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// TestCutOverTLS cuts connections after the handshake, of HTTP/1.1 and HTTP/2: the server may
// have executed the write. A certificate of another name is refused before.
func TestCutOverTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			if (r.ProtoMajor == 2) != http2 {
				t.Errorf("a request of %s", r.Proto)
			}
			panic(http.ErrAbortHandler)
		}))
		srv.EnableHTTP2, srv.Config.ErrorLog = http2, log.New(io.Discard, "", 0)
		srv.StartTLS()
		t.Cleanup(srv.Close)
		s, err := Open(Endpoint{URL: srv.URL + "/shop", Account: "shop", Key: developmentKey}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		config := &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
		s.transport.TLSClientConfig = config
		insert := store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}})
		for range 2 {
			if _, err := s.Apply(context.Background(), "People", insert); !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("HTTP/2 %t: %v, want ErrOutcomeUnknown", http2, err)
			}
		}
		s.Close()
		s.closed.Store(false)
		config.ServerName = "shop.invalid"
		_, err = s.Apply(context.Background(), "People", insert)
		var wrong *AddressError
		if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.What, "the certificate is not trusted: x509: certificate is valid for") {
			t.Errorf("a certificate of another name: %v", err)
		}
	}
}
