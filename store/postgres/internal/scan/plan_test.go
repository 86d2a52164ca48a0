package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store/postgres/internal/scan"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestPlans checks that a chunk reads a range of an index, in both directions, on a large
// partition of short or of long keys, and sorts nothing but rows with one prefix, by what is after it.
func TestPlans(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.run(t, `INSERT INTO tr_entities SELECT t.id, 'p', convert_to(r::text, 'UTF8'), 1, '\x000000' FROM tr_tables t, generate_series(1, 20000) r;
		INSERT INTO tr_long SELECT t.id, sha256(convert_to(r::text, 'UTF8')), 'p', convert_to(r::text, 'UTF8'), 1, '\x000000'
		FROM tr_tables t, generate_series(1, 20000) r`)
	pgtest.Exec(t, b.url, "ANALYZE")
	for _, c := range []struct{ name, sql, types, args, want, sort string }{
		{"forward", scan.Forward, "", "", "ROW(p, r) >= ROW($3, $4)", ""},
		{"backward", scan.Backward, "", "", "ROW(p, r) < ROW($5, $6)", ""},
		{"long", scan.LongForward, "bytea, bytea, ", "'', '', ", "substr(r, 1, 1200) >= $6", ""},
		{"long backward", scan.LongBackward, "bytea, bytea, ", "'', '', ", "substr(r, 1, 1200) <= $8", ""},
		{"sorted", scan.SortedForward, "bytea, bytea, ", "'', '', ", "substr(r, 1, 1200) >= $6", "Sort Key: (substr(tr_long.r, 1201))"},
		{"sorted backward", scan.SortedBackward, "bytea, bytea, ", "'', '', ", "substr(r, 1, 1200) <= $8", "Sort Key: (substr(tr_long.r, 1201)) DESC"},
	} {
		plan := strings.Join(pgtest.Exec(t, b.url, "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off",
			fmt.Sprintf("PREPARE s (text, bytea, bytea, bytea, bytea, bytea, %sbigint, bigint) AS %s", c.types, c.sql),
			fmt.Sprintf("EXPLAIN EXECUTE s ('', '', '', '', '', '', %s1, 1)", c.args)), "\n")
		ranges := strings.Contains(plan, "Index Cond: ((tid = ") && strings.Contains(plan, c.want) && !strings.Contains(plan, "Filter: (ROW")
		if !ranges || strings.Contains(plan, "Sort") != (c.sort != "") || !strings.Contains(plan, c.sort) {
			t.Errorf("%s: want a range of the index with %s and the sort %q:\n%s", c.name, c.want, c.sort, plan)
		}
	}
}
