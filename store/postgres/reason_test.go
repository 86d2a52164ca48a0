package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestRefusals checks the errors of Init and Connect for a server without standbys and for
// databases without tables and with tables of other versions.
func TestRefusals(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	execute := func(sql string) {
		c, err := pgconn.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		if _, err := c.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	set := func(version string) { execute("UPDATE tr_version SET version = " + version) }
	connect := func(o *postgres.Options) error {
		d, err := postgres.Connect(t.Context(), url, o)
		if err == nil {
			err = d.Close()
		}
		return err
	}
	async := &postgres.Options{AllowAsync: true}
	for _, step := range []struct {
		name string
		do   func() error
		want error
		text string
	}{
		{"Init without a standby", func() error { return postgres.Init(t.Context(), url, nil) }, postgres.ErrAsync, "synchronous_standby_names"},
		{"Connect without tables", func() error { return connect(async) }, store.ErrNotDatabase, "has no tables of Tablerock"},
		{"Init", func() error { return postgres.Init(t.Context(), url, async) }, nil, ""},
		{"Connect", func() error { return connect(async) }, nil, ""},
		{"Connect without a standby", func() error { return connect(nil) }, postgres.ErrAsync, "synchronous_standby_names"},
		{"older tables", func() error { set("-1"); return connect(async) }, store.ErrNotDatabase, "older version"},
		{"newer tables", func() error { set("99"); return connect(async) }, store.ErrNewerFormat, "version 99"},
		{"Init on newer tables", func() error { return postgres.Init(t.Context(), url, async) }, store.ErrNewerFormat, "version 99"},
		{"no version", func() error { execute("DELETE FROM tr_version"); return connect(async) }, store.ErrNotDatabase, "tr_version does not have"},
		{"Init without a version", func() error { return postgres.Init(t.Context(), url, async) }, store.ErrNotDatabase, "restore the whole database"},
		{
			"no clock", func() error {
				execute("INSERT INTO tr_version VALUES (1, 2); DELETE FROM tr_clock")
				return connect(async)
			},
			store.ErrNotDatabase, "tr_clock does not have",
		},
	} {
		err := step.do()
		if !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.name, err, step.want)
		} else if err != nil && (!strings.Contains(err.Error(), step.text) || strings.Contains(err.Error(), "directory")) {
			t.Errorf("%s: %v, want %q", step.name, err, step.text)
		}
	}
}
