package pgbackend_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// parse returns the URL of a text.
func parse(t *testing.T, text string) *pgbackend.URL {
	t.Helper()
	u, err := pgbackend.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// metricsOf returns the names of the databases of which a set has metrics.
func metricsOf(s *pgbackend.Set) int {
	var text strings.Builder
	s.WriteMetrics(&text)
	return strings.Count(text.String(), "tablerock_backend_max_connections{")
}

// TestSet opens accounts at two URLs: those at one URL share a database, and an account has one
// store. While a third URL does not answer, pings and metrics do not wait for it.
func TestSet(t *testing.T) {
	server := pgtest.Shared(t)
	async := postgres.Options{AllowAsync: true, MaxConns: 3}
	urls := []string{server.NewDatabase(t), server.NewDatabase(t)}
	for _, text := range urls {
		if err := postgres.Init(t.Context(), text, &async); err != nil {
			t.Fatal(err)
		}
	}
	set := pgbackend.NewSet(async)
	for i, c := range []struct {
		url, account string
		databases    int
	}{
		{urls[0], "one", 1},
		{urls[0] + "?account=two", "two", 1},
		{strings.Replace(urls[0], "postgres://", "postgresql://", 1), "one", 1},
		{urls[1], "one", 2},
	} {
		first, err := set.Store(t.Context(), parse(t, c.url), c.account)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := set.Store(t.Context(), parse(t, c.url), c.account); err != nil || again != first {
			t.Errorf("step %d: the second call returns another store and error %v", i, err)
		}
		if n := metricsOf(set); n != c.databases {
			t.Errorf("step %d: %d databases are open, want %d", i, n, c.databases)
		}
	}

	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted, failed := make(chan net.Conn, 1), make(chan error, 1)
	go func() {
		c, err := deaf.Accept()
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 8)) // the request for TLS
		}
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	silent := parse(t, "postgres://ann@"+deaf.Addr().String()+"/shop?connect_timeout=60")
	go func() {
		_, err := set.Store(t.Context(), silent, "one")
		failed <- err
	}()
	c := <-accepted
	if err := set.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if n := metricsOf(set); n != 2 {
		t.Errorf("%d databases are open, want 2", n)
	}
	select {
	case err := <-failed:
		t.Errorf("the silent server ended the call with %v before the pings", err)
	default:
	}
	_ = deaf.Close()
	_ = c.Close()
	if err := <-failed; err == nil {
		t.Error("the silent server is accepted")
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	if err := set.Ping(t.Context()); err == nil {
		t.Error("a closed set can serve")
	}
}
