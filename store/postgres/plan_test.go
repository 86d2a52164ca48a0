package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// openOne returns a store whose database has one connection in its pool.
func openOne(t *testing.T) *Store {
	t.Helper()
	url := pgtest.Shared(t).NewDatabase(t)
	return openURL(t, url, &Options{AllowAsync: true, MaxConns: 1})
}

// openURL makes the schema of a database and opens the account acme.
func openURL(t *testing.T, url string, o *Options) *Store {
	t.Helper()
	if err := Init(t.Context(), url, &Options{AllowAsync: true}); err != nil {
		t.Fatal(err)
	}
	d, err := Connect(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	s, err := d.Account(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlans checks that each statement finds its entities by an index on the whole key,
// whatever PostgreSQL knows of the table: an empty one, one partition with all rows, and many
// partitions.
func TestPlans(t *testing.T) {
	t.Parallel()
	ranges := []rangePlan{
		{edgeEntities, "edge", "1, 'p', 'r1', 999", "(ROW(p, r) >= ", "(ROW(p, r) >= "},
		{edgeLong, "edge_long", "1, 'h', 999", "(h >= ", "(h >= "},
		{sweepEntities, "sweep", "1, 'p', 'r1', 'p', 'r9'", "(ROW(p, r) >= ", "(ROW(p, r) <= "},
		{sweepLong, "sweep_long", "1, 'h', 'i'", "(h >= ", "(h <= "},
	}
	for _, c := range []struct {
		name             string
		partitions, rows int
	}{{"empty", 0, 0}, {"one partition", 1, 30_000}, {"many partitions", 3_000, 10}} {
		t.Run(c.name, func(t *testing.T) {
			s := openOne(t)
			s.makeTable(t)
			s.run(t, fmt.Sprintf(`INSERT INTO tr_entities SELECT t.id, convert_to('p' || p, 'UTF8'), convert_to('r' || r, 'UTF8'), 1, '\x00000000'
				FROM tr_tables t, generate_series(1, %d) p, generate_series(1, %d) r`, c.partitions, c.rows))
			s.run(t, fmt.Sprintf(`INSERT INTO tr_long SELECT t.id, sha256(convert_to('r' || r, 'UTF8')), 'p', convert_to('r' || r, 'UTF8'), 1, '\x00000000'
				FROM tr_tables t, generate_series(1, %d) r`, c.partitions*c.rows))
			s.run(t, "ANALYZE")
			s.reconnect(t)
			s.checkRanges(t, ranges)
			const array = `ARRAY['r1', 'r2', 'r3']::bytea[]`
			table := "'acme', 'people', "
			for _, st := range []struct {
				st   *wire.Statement
				name string
				args string
				key  string // the columns that the condition on the index must have
			}{
				{getEntity, "get", table + "'p', 'r1'", "tid p r"},
				{getLong, "get_long", table + "'h'", "tid h"},
				{insertOne, "insert", table + "'p', 'r1', ''", "tid p r"},
				{insertMany, "insert_many", table + "'p', " + array + ", " + array, "tid p r"},
				{upsertMany, "upsert_many", table + "'p', " + array + ", " + array, "tid p r"},
				{sameBase, "same_base", table + "'p', 'r1'", "tid p r"},
				{replaceOne, "replace", table + "'p', 'r1', '', 0", "tid p r"},
				{deleteOne, "delete", table + "'p', 'r1', 0", "tid p r"},
				{lockRows, "lock", table + "'p', " + array, "tid p r"},
				{lockValues, "lock_values", table + "'p', " + array, "tid p r"},
				{lockLong, "lock_long", table + array, "tid h"},
				{readRows, "read_rows", table + "'p', " + array, "tid p r"},
				{readValues, "read_values", table + "'p', " + array, "tid p r"},
				{readLong, "read_long", table + array, "tid h"},
				{updateRow, "update_row", "1, 'p', 'r1', ''", "tid p r"},
				{updateLong, "update_long", "1, 'h', ''", "tid h"},
				{deleteRow, "delete_row", "1, 'p', 'r1'", "tid p r"},
				{deleteLong, "delete_long", "1, 'h'", "tid h"},
			} {
				plan := s.explain(t, st.st, "EXPLAIN EXECUTE tr_"+st.name+" ("+st.args+")")
				found := false
				for _, line := range strings.Split(plan, "\n") {
					whole := strings.Contains(line, "Index Cond:")
					for _, column := range strings.Fields(st.key) {
						whole = whole && strings.Contains(line, "("+column+" = ")
					}
					found = found || whole
				}
				if !found || strings.Contains(plan, "Seq Scan on tr_entities") || strings.Contains(plan, "Seq Scan on tr_long") {
					t.Errorf("%s does not find its rows by %s:\n%s", st.name, st.key, plan)
				}
			}
		})
	}
}

// TestWritesBesideDump checks that writes and heartbeats read no dead versions of the row of tr_clock, which a
// transaction keeps that stays open for long, as that of pg_dump.
func TestWritesBesideDump(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	s := openURL(t, url, &Options{AllowAsync: true, MaxConns: 1, manual: true})
	s.makeTable(t)
	const (
		table = "'acme', 'people', "
		array = "ARRAY['a', 'b']::bytea[]"
	)
	statements := []struct {
		st         *wire.Statement
		name, args string
	}{
		{createTable, "create", "'acme', 'other', 'other'"},
		{insertOne, "insert", table + "'p', 'new', '\\x00000000'"},
		{upsertOne, "upsert", table + "'p', 'a', '\\x00000000'"},
		{upsertMany, "upsert_many", table + "'p', " + array + ", ARRAY['\\x00000000', '\\x00000000']::bytea[]"},
		{replaceOne, "replace", table + "'p', 'a', '\\x00000000', 0"},
		{insertRow, "insert_row", "0, 'p', 'new', '\\x00000000'"},
		{updateRow, "update_row", "1, 'p', 'a', '\\x00000000'"},
		{beatHere, "beat", "0"},
	}
	s.apply(t, store.Insert(one("a", 1)))
	// Each statement runs in a transaction that is rolled back, so only tr_clock changes.
	read := func() (buffers []int) {
		for _, one := range statements {
			plan := s.explain(t, one.st, "BEGIN; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE tr_"+one.name+" ("+one.args+"); ROLLBACK")
			n, hit := 0, regexp.MustCompile(`shared hit=(\d+)`).FindStringSubmatch(plan)
			if hit != nil {
				n, _ = strconv.Atoi(hit[1])
			}
			if n == 0 {
				t.Fatalf("%s: no buffers:\n%s", one.name, plan)
			}
			buffers = append(buffers, n)
		}
		return buffers
	}
	read() // fills the caches of the session
	before := read()
	o := newOther(t, url)
	o.exec("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM tr_tables")
	pgtest.Exec(t, url, "DO $$ BEGIN FOR i IN 1..3000 LOOP UPDATE tr_clock SET base = base + 1000000; COMMIT; END LOOP; END $$")
	for i, n := range read() {
		if n > before[i]+8 {
			t.Errorf("%s reads %d pages beside a dump, %d before", statements[i].name, n, before[i])
		}
	}
}

// reconnect drops the connections of the pool with their plans.
func (s *Store) reconnect(t *testing.T) {
	t.Helper()
	s.db.pool.Reset("")
}

// explain prepares a statement and executes an EXPLAIN of it.
func (s *Store) explain(t *testing.T, st *wire.Statement, sql string) string {
	t.Helper()
	var lines []string
	err := s.read(t.Context(), func(c *wire.Conn) error {
		c.Queue(st)
		_, _ = c.RoundTrip(t.Context(), nil) // prepared, and refused without parameters
		rows, err := c.Script(t.Context(), sql)
		for _, row := range rows {
			lines = append(lines, row...)
		}
		return err
	})
	if err != nil {
		t.Fatal(sql, err)
	}
	return strings.Join(lines, "\n")
}

var _ store.Store = (*Store)(nil)

// makeTable creates the table people.
func (s *Store) makeTable(t *testing.T) {
	t.Helper()
	if err := s.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
}

// run executes SQL and returns its rows.
func (s *Store) run(t *testing.T, sql string) (rows [][]string) {
	t.Helper()
	err := s.read(t.Context(), func(c *wire.Conn) (err error) {
		rows, err = c.Script(t.Context(), sql)
		return err
	})
	if err != nil {
		t.Fatal(sql, err)
	}
	return rows
}

// rangePlan is a statement whose rows are a range of an index.
type rangePlan struct {
	st       *wire.Statement
	name     string
	args     string
	from, to string // conditions on the index
}

func (s *Store) checkRanges(t *testing.T, list []rangePlan) {
	t.Helper()
	for _, r := range list {
		plan := s.explain(t, r.st, "EXPLAIN EXECUTE tr_"+r.name+" ("+r.args+")")
		found := slices.ContainsFunc(strings.Split(plan, "\n"), func(line string) bool {
			return strings.Contains(line, "Index Cond: ((tid = ") && strings.Contains(line, r.from) && strings.Contains(line, r.to)
		})
		if !found || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on tr_entities") || strings.Contains(plan, "Seq Scan on tr_long") {
			t.Errorf("%s does not read a range of the index:\n%s", r.name, plan)
		}
	}
}
