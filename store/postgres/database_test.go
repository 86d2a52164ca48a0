package postgres_test

import (
	"context"
	"errors"
	"testing"

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

func TestConnectRefusesAsync(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(ctx, url, nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Init on a server without a standby: %v", err)
	}
}
