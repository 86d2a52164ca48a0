package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// versionOne makes version 1 of the schema of version 2.
const versionOne = `ALTER TABLE tr_clock DROP CONSTRAINT tr_clock_pkey, ADD COLUMN one int NOT NULL DEFAULT 1 PRIMARY KEY CHECK (one = 1);
	ALTER TABLE tr_clock ALTER COLUMN one DROP DEFAULT;
	ALTER TABLE tr_clock SET (fillfactor = 10);
	UPDATE tr_version SET version = 1`

// TestUpgrade upgrades the tables of version 1 while a Database writes to them: each write succeeds, and the
// Timestamps rise. Then the tables are those of a new database.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url, fresh := pgtest.Shared(t).NewDatabase(t), pgtest.Shared(t).NewDatabase(t)
	for _, one := range []string{url, fresh} {
		if err := postgres.Init(ctx, one, async); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, url, versionOne)
	var log bytes.Buffer
	d, err := postgres.Connect(ctx, url, &postgres.Options{AllowAsync: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.Account(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTable(ctx, "People"); err != nil {
		t.Fatal(err)
	}
	upgraded := make(chan error, 1)
	last, left := edm.Ticks(0), 200 // writes after the upgrade
	for n := 0; left > 0; n++ {
		if n == 200 {
			go func() { upgraded <- errors.Join(postgres.Init(ctx, url, async), postgres.Init(ctx, url, async)) }()
		}
		if len(upgraded) == 1 {
			left--
		}
		result, err := s.Apply(ctx, "People", store.InsertOrReplace(edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(n % 7)}}))
		if err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		if result[0].Timestamp <= last {
			t.Fatalf("write %d has the Timestamp %d after %d", n, result[0].Timestamp, last)
		}
		last = result[0].Timestamp
	}
	if err := <-upgraded; err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "older version") != 1 {
		t.Errorf("the log of a Database on older tables: %s", text)
	}
	const shape = `SELECT string_agg(line, chr(10) ORDER BY line) FROM (
		SELECT format('%s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod)) AS line
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE c.relname ~ '^tr_' AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT format('%s %s', relname, reloptions) FROM pg_class WHERE relname ~ '^tr_' AND relkind = 'r'
		UNION ALL SELECT 'version ' || version FROM tr_version) AS l`
	if got, want := pgtest.Exec(t, url, shape)[0], pgtest.Exec(t, fresh, shape)[0]; got != want {
		t.Errorf("upgraded:\n%s\nnew:\n%s", got, want)
	}
}

// TestUpgradeBesideDump upgrades while a transaction reads the tables for long, as that of pg_dump: the upgrade gives up
// before writes have waited for it as long as they can, and the next one succeeds.
func TestUpgradeBesideDump(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(t.Context(), url, async); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, versionOne)
	dump, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close(t.Context())
	if _, err := dump.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM tr_clock").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Init(t.Context(), url, async); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("Init: %v, want %v for a lock", err, store.ErrUnavailable)
	}
	if version := pgtest.Exec(t, url, "SELECT version FROM tr_version")[0]; version != "1" {
		t.Errorf("version %s, want 1", version)
	}
	if _, err := dump.Exec(t.Context(), "ROLLBACK").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Init(t.Context(), url, async); err != nil {
		t.Error(err)
	}
	if version := pgtest.Exec(t, url, "SELECT version FROM tr_version")[0]; version != "2" {
		t.Errorf("version %s, want 2", version)
	}
}
