package pgbackend_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
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

// TestPingReason lets no beat end, while another host of the URL does not answer in time. The error of a Ping has both
// reasons.
func TestPingReason(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	async := postgres.Options{AllowAsync: true}
	if err := postgres.Init(t.Context(), url, &async); err != nil {
		t.Fatal(err)
	}
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	at := strings.LastIndex(url, "/")
	set := pgbackend.NewSet(async)
	if _, err := set.Store(t.Context(), parse(t, url[:at]+","+deaf.Addr().String()+url[at:]+"?connect_timeout=1"), "one"); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, `CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN new; END';
		CREATE TRIGGER hang BEFORE UPDATE ON tr_clock FOR EACH ROW EXECUTE FUNCTION hang()`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for text := ""; !strings.Contains(text, "acknowledge a commit") || !strings.Contains(text, "timeout"); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("within a minute: %s", text)
		}
		if err := set.Ping(ctx); err != nil {
			text = err.Error()
		}
		if strings.Contains(text, "in use") {
			t.Fatalf("the reason is lost: %s", text)
		}
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseDuringWrite closes a set while the commit of a write does not end, as without a standby. The
// server gave the request its time before, so Close does not wait for it.
func TestCloseDuringWrite(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	async := postgres.Options{AllowAsync: true}
	if err := postgres.Init(t.Context(), url, &async); err != nil {
		t.Fatal(err)
	}
	set := pgbackend.NewSet(async)
	s, err := set.Store(t.Context(), parse(t, url), "one")
	if err == nil {
		err = s.CreateTable(t.Context(), "People")
	}
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, `CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN new; END';
		CREATE TRIGGER hang BEFORE INSERT ON tr_entities FOR EACH ROW EXECUTE FUNCTION hang()`)
	written, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Apply(context.WithoutCancel(t.Context()), "People", store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}))
		written <- err
	}()
	for pgtest.Exec(t, url, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")[0] == "0" {
		select {
		case err := <-written:
			t.Fatalf("the write ended: %v", err)
		default:
		}
	}
	go func() { closed <- set.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("Close waits for a write")
	}
	if err := <-written; !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("the write: %v, want %v", err, store.ErrOutcomeUnknown)
	}
}
