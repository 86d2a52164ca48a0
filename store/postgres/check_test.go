package postgres_test

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	good := pgtest.Start(t)
	bad := pgtest.Start(t, "fsync=off", "full_page_writes=off", "data_sync_retry=on", "max_connections=30")
	good.Exec(t, "CREATE ROLE many LOGIN CONNECTION LIMIT 100", "CREATE ROLE few LOGIN CONNECTION LIMIT 33")
	grants := []string{"GRANT ALL ON ALL TABLES IN SCHEMA public TO many, few", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO many, few"}
	const limited = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 33', current_database()); END $$"
	for _, c := range []struct {
		name    string
		server  *pgtest.Server
		init    bool
		prepare []string
		user    string // "" for the superuser
		fails   string // the items that are not OK
	}{
		{"good but for the standby", good, true, nil, "", "synchronous standby"},
		{"no schema", good, false, nil, "", "schema, synchronous standby"},
		{"newer schema", good, true, []string{"UPDATE tr_version SET version = version + 1"}, "", "schema, synchronous standby"},
		{"no version", good, true, []string{"DELETE FROM tr_version"}, "", "schema, synchronous standby"},
		{"older schema", good, true, []string{versionOne}, "", "schema, synchronous standby"},
		{"no clock", good, true, []string{"DELETE FROM tr_clock"}, "", "synchronous standby, clock of Timestamps"},
		{"two clocks", good, true, []string{"INSERT INTO tr_clock VALUES (1)"}, "", "synchronous standby, clock of Timestamps"},
		{"clock far ahead once", good, true, []string{"UPDATE tr_clock SET base = 200000000000000000"}, "", "synchronous standby, clock of Timestamps"},
		{"bad settings", bad, true, nil, "", "synchronous standby, fsync, full_page_writes, data_sync_retry, free connections"},
		{
			"no index", good, true,
			[]string{"ALTER TABLE tr_entities DROP CONSTRAINT tr_entities_pkey", "CREATE INDEX ON tr_entities (tid, p)"},
			"", "synchronous standby, plan of a page",
		},
		{"limit of the user", good, true, grants, "few", "synchronous standby, free connections"},
		{"limit of the database", good, true, append(grants, limited), "many", "synchronous standby, free connections"},
		{"limits above", good, true, grants, "many", "synchronous standby"},
		{"limit of the database for a superuser", good, true, []string{limited}, "", "synchronous standby"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := c.server.NewDatabase(t)
			if c.init {
				if err := postgres.Init(t.Context(), url, async); err != nil {
					t.Fatal(err)
				}
			}
			pgtest.Exec(t, url, c.prepare...)
			if c.user != "" {
				url = strings.Replace(url, "postgres@", c.user+"@", 1)
			}
			report, err := postgres.Check(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			var fails []string
			for _, i := range report.Items {
				if !i.OK {
					fails = append(fails, i.Name)
				}
				if i.Detail == "" {
					t.Errorf("%s has no detail", i.Name)
				}
			}
			if got := strings.Join(fails, ", "); got != c.fails {
				t.Errorf("not OK: %s; want %s\n%+v", got, c.fails, report.Items)
			}
			if !strings.HasPrefix(report.Server, "PostgreSQL ") {
				t.Errorf("server: %q", report.Server)
			}
		})
	}
}
