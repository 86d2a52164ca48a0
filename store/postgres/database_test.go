package postgres_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

var async = &postgres.Options{AllowAsync: true}

func TestConnect(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Shared(t).NewDatabase(t)
	if _, err := postgres.Connect(ctx, url, async); !errors.Is(err, store.ErrNotDatabase) {
		t.Errorf("Connect without a schema: %v, want %v", err, store.ErrNotDatabase)
	}
	for range 2 {
		if err := postgres.Init(ctx, url, async); err != nil {
			t.Fatal(err)
		}
	}
	d, err := postgres.Connect(ctx, url, async)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Ping(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
	s, err := d.Account(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Ping(ctx), s.Close(), s.Close(), d.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Ping(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Ping after Close: %v", err)
	}
	if err := d.Ping(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Ping of the database after Close: %v", err)
	}
}

// TestConnectionLimit has more calls at a time than PostgreSQL allows connections to the user. They wait for each other.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(t.Context(), url, async); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, "DO $$ BEGIN CREATE ROLE narrow LOGIN CONNECTION LIMIT 4; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO narrow", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO narrow")
	d, err := postgres.Connect(t.Context(), strings.Replace(url, "postgres@", "narrow@", 1), &postgres.Options{AllowAsync: true, MaxConns: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.Account(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTable(t.Context(), "Orders"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for range 20 {
				e := edm.Entity{Key: edm.Key{Partition: strconv.Itoa(i), Row: "r"}}
				if _, err := s.Apply(t.Context(), "Orders", store.InsertOrReplace(e)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

// TestOtherEncoding checks that a database is refused whose encoding has not all characters.
func TestOtherEncoding(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	server.Exec(t, "CREATE DATABASE latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	url := strings.TrimSuffix(server.URL(), "/postgres") + "/latin1"
	const want = "the database has the encoding LATIN1, want UTF8; create another one"
	if err := postgres.Init(t.Context(), url, async); !errors.Is(err, store.ErrNotDatabase) || !strings.Contains(err.Error(), want) {
		t.Errorf("Init: %v, want %s", err, want)
	}
	d, err := postgres.Connect(t.Context(), url, async)
	if !errors.Is(err, store.ErrNotDatabase) || !strings.Contains(err.Error(), want) {
		t.Errorf("Connect: %v, want %s", err, want)
	}
	if err == nil {
		_ = d.Close()
	}
}

// TestPingWithoutTables checks that Ping fails while a table is missing, and tells why.
func TestPingWithoutTables(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(t.Context(), url, async); err != nil {
		t.Fatal(err)
	}
	d, err := postgres.Connect(t.Context(), url, async)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	back := "SELECT 1"
	for _, table := range []string{"tr_version", "tr_accounts", "tr_tables", "tr_dead", "tr_entities", "tr_long", "tr_clock"} {
		pgtest.Exec(t, url, back, "ALTER TABLE "+table+" RENAME TO away")
		err := d.Ping(t.Context())
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNotDatabase) || !strings.Contains(err.Error(), table) {
			t.Errorf("Ping without %s: %v, want %v with its name", table, err, store.ErrUnavailable)
		}
		back = "ALTER TABLE away RENAME TO " + table
	}
	pgtest.Exec(t, url, back)
	if err := d.Ping(t.Context()); err != nil {
		t.Errorf("Ping with all tables: %v", err)
	}
}

func TestConnectRefusesAsync(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(ctx, url, nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Init on a server without a standby: %v", err)
	}
}

// TestInitAtOnce prepares a database by several processes at once. The one that comes second finds a table, its
// type or its index, by chance.
func TestInitAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		url := pgtest.Shared(t).NewDatabase(t)
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				<-begin
				if err := postgres.Init(t.Context(), url, async); err != nil {
					t.Errorf("Init beside others: %v", err)
				}
			})
		}
		close(begin)
		all.Wait()
	}
}

// TestInitBesideOthers prepares a database that has something else with the name of a table: the error
// names it, and does not ask for what was tried.
func TestInitBesideOthers(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"CREATE TABLE tr_tick (n int)", "CREATE TYPE tr_clock AS ENUM ('a')"} {
		url := pgtest.Shared(t).NewDatabase(t)
		c, err := pgconn.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Exec(t.Context(), sql).ReadAll()
		if err := errors.Join(err, c.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if err := postgres.Init(t.Context(), url, async); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("Init after %s: %v", sql, err)
		}
	}
}
