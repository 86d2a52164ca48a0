package pgbackend_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestFiguresOfLockedTable asks for the sizes of a table that is locked, as by VACUUM FULL. They are an error, and
// not zero.
func TestFiguresOfLockedTable(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	async := postgres.Options{AllowAsync: true}
	if err := postgres.Init(t.Context(), url, &async); err != nil {
		t.Fatal(err)
	}
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), "BEGIN; LOCK TABLE tr_entities").ReadAll(); err != nil {
		t.Fatal(err)
	}
	s, err := pgbackend.Open(t.Context(), parse(t, url), "one", &async)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := pgbackend.Figures(t.Context(), s); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("figures %v, error %v; want %v", got, err, store.ErrUnavailable)
	}
}
