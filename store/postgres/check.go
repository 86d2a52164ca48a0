package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store/postgres/internal/scan"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// Report is what Check has found about a database.
type Report struct {
	Server string // the product and its version
	Items  []Item
}

// Item is one property of a database.
type Item struct {
	Name   string
	OK     bool
	Detail string // what was found, and what to do if it is not OK
}

// OK reports whether all items are.
func (r *Report) OK() bool {
	for _, i := range r.Items {
		if !i.OK {
			return false
		}
	}
	return true
}

func (r *Report) add(name string, ok bool, format string, args ...any) {
	r.Items = append(r.Items, Item{name, ok, fmt.Sprintf(format, args...)})
}

// serverConns is the number of connections of a Database by default.
const serverConns = 32 + OtherConns

var errAnswer = errors.New("the database gives an unexpected answer")

// checker asks a server for a Report.
type checker struct {
	ctx    context.Context
	c      *wire.Conn
	url    string
	now    func() time.Time
	tables bool // there are tables that this program reads
	report Report
}

// Check reports what of a database holds that Tablerock needs for its promises. It returns an
// error if it cannot connect.
func Check(ctx context.Context, url string) (*Report, error) {
	now := (&Options{}).clock()
	d, err := wire.NewDialer(url, true, now)
	if err != nil {
		return nil, err
	}
	c, err := d.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	k, err := wire.KindOf(ctx, c)
	if err != nil {
		return nil, wire.ConnectError(ctx, err)
	}
	ch := &checker{ctx: ctx, c: c, url: url, now: now}
	checks := []func() error{ch.version, ch.schema, ch.pooler, ch.encoding}
	switch k {
	case wire.PostgreSQL:
		checks = append(checks, ch.standby, ch.durable, ch.connections, ch.clock)
	case wire.YugabyteDB:
		checks = append(checks, ch.foreignReplication, ch.isolation, ch.clock)
	case wire.CockroachDB:
		checks = append(checks, ch.foreignReplication, ch.clock)
	}
	for _, check := range append(checks, ch.plan) {
		if err := check(); err != nil {
			return nil, failure(err, false)
		}
	}
	return &ch.report, nil
}

// row returns the only row of a query, with n columns.
func (ch *checker) row(sql string, n int) ([]string, error) {
	rows, err := ch.c.Script(ch.ctx, sql)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != n {
		return nil, errAnswer
	}
	return rows[0], nil
}

func (ch *checker) version() error {
	row, err := ch.row("SELECT version()", 1)
	if err == nil {
		ch.report.Server, _, _ = strings.Cut(row[0], " on ")
	}
	return err
}

// schema checks that the tables exist and have the version of this program.
func (ch *checker) schema() error {
	if err := checkSchema(ch.ctx, ch.c); err != nil {
		ch.report.add("schema", false, "%v", err)
		return nil
	}
	ch.tables = true
	version, err := schemaOf(ch.ctx, ch.c)
	if err == nil && version < schemaVersion {
		ch.report.add("schema", false, "version %d works, but a transaction of hours, as of pg_dump, makes each write slow; "+
			"when all servers run this version of the program, upgrade the tables by: tablerock backend init URL", version)
	} else if err == nil {
		ch.report.add("schema", true, "version %d", version)
	}
	return err
}

// pooler checks that the connection ends at the server: a connection pooler cancels a commit
// that waits for its standby when its client goes away.
func (ch *checker) pooler() error {
	c, err := pgconn.Connect(ch.ctx, ch.url)
	if err != nil {
		return wire.ConnectError(ch.ctx, err)
	}
	defer c.Close(ch.ctx)
	result := c.ExecParams(ch.ctx, "SELECT pg_backend_pid()", nil, nil, nil, nil).Read()
	if result.Err != nil || len(result.Rows) != 1 {
		return wire.ConnectError(ch.ctx, result.Err)
	}
	pid := string(result.Rows[0][0])
	if pid != strconv.FormatUint(uint64(c.PID()), 10) && pid != "0" {
		ch.report.add("direct connection", false,
			"the connection is to a pooler such as PgBouncer, which can make unreplicated commits visible: use the address of the server")
		return nil
	}
	ch.report.add("direct connection", true, "no pooler was found between this machine and the server")
	return nil
}

func (ch *checker) encoding() error {
	encoding, err := encodingOf(ch.ctx, ch.c)
	switch {
	case err != nil:
		return err
	case encoding == utf8:
		ch.report.add("encoding", true, "%s", encoding)
	default:
		ch.report.add("encoding", false, "%s, want %s; %s", encoding, utf8, makeUTF8)
	}
	return nil
}

// standby checks that commits wait for a standby and that there is one.
func (ch *checker) standby() error {
	row, err := ch.row(`SELECT current_setting('synchronous_standby_names'), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(*)
		FROM pg_stat_replication`, 3)
	if err != nil {
		return err
	}
	switch names, synchronous := row[0], row[1]; {
	case names == "":
		ch.report.add("synchronous standby", false,
			"synchronous_standby_names is empty: a failover loses acknowledged writes; name a standby, or accept it with --allow-async")
	case synchronous == "0" && row[2] != "0":
		ch.report.add("synchronous standby", true, "%s; this user cannot see which standbys are synchronous", names)
	case synchronous == "0":
		ch.report.add("synchronous standby", false, "%s; none is connected, so every write waits", names)
	default:
		ch.report.add("synchronous standby", true, "%s; %s connected", names, synchronous)
	}
	return nil
}

func (ch *checker) foreignReplication() error {
	ch.report.add("synchronous standby", false, "replication is below the protocol and cannot be seen: check it there, then use --allow-async")
	return nil
}

// isolation checks that YugabyteDB does not raise READ COMMITTED to REPEATABLE READ, which
// turns every wait for a row into a failure.
func (ch *checker) isolation() error {
	row, err := ch.row("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT current_setting('yb_effective_transaction_isolation_level', true); COMMIT", 1)
	if err == nil {
		ch.report.add("isolation", strings.EqualFold(row[0], "read committed"),
			"the effective level is %q; start the servers with yb_enable_read_committed_isolation=true", row[0])
	}
	return err
}

// durable checks the settings with which an acknowledged write is on the disk.
func (ch *checker) durable() error {
	for _, s := range []struct{ name, want, why string }{
		{"fsync", "on", "a power cut damages the database"},
		{"full_page_writes", "on", "a power cut damages the database"},
		{"data_sync_retry", "off", "a failed write to disk is taken for a success"},
	} {
		row, err := ch.row("SELECT current_setting('"+s.name+"')", 1)
		if err != nil {
			return err
		}
		if row[0] == s.want {
			ch.report.add(s.name, true, "%s", row[0])
		} else {
			ch.report.add(s.name, false, "%s: %s; set it to %s", row[0], s.why, s.want)
		}
	}
	return nil
}

// connections checks that a pool of the default size fits beside the sessions that there are. The user and the
// database can have limits of their own, except for a superuser.
func (ch *checker) connections() error {
	row, err := ch.row(`SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - s.clients,
		CASE WHEN u.rolconnlimit >= 0 AND NOT u.rolsuper THEN u.rolconnlimit - s.of_user END,
		CASE WHEN d.datconnlimit >= 0 AND NOT u.rolsuper THEN d.datconnlimit - s.of_database END)
		FROM pg_roles AS u, pg_database AS d, (SELECT count(*) AS clients, count(*) FILTER (WHERE usename = session_user) AS of_user,
			count(*) FILTER (WHERE datname = current_database()) AS of_database
			FROM pg_stat_activity WHERE backend_type = 'client backend' OR backend_type IS NULL) AS s
		WHERE u.rolname = session_user AND d.datname = current_database()`, 1)
	if err != nil {
		return err
	}
	free, err := strconv.Atoi(row[0])
	if err == nil {
		ch.report.add("free connections", free >= serverConns, "%d; each server of Tablerock uses up to %d", free, serverConns)
	}
	return err
}

// clock compares the clocks of the server, of its Timestamps and of this machine.
func (ch *checker) clock() error {
	rows, err := ch.c.Script(ch.ctx, "SELECT "+clockSQL+", coalesce("+clockSQL+" - "+baseSQL+
		" - (SELECT last_value FROM tr_tick), 0), (SELECT count(*) FROM tr_clock)")
	if wire.CodeOf(err) == "42P01" {
		return nil // the item schema says so
	}
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) != 3 {
		return errAnswer
	}
	server, err := strconv.ParseInt(rows[0][0], 10, 64)
	if err != nil {
		return err
	}
	behind, err := strconv.ParseInt(rows[0][1], 10, 64)
	if err != nil {
		return err
	}
	ahead := durationOf(server - int64(edm.TicksOf(ch.now())))
	ch.report.add("clock of the server", ahead.Abs() < maxAhead, "%v ahead of this machine's; run NTP on both", ahead.Round(time.Millisecond))
	if rows[0][2] != "1" {
		ch.report.add("clock of Timestamps", false, "%v", damaged("tr_clock"))
		return nil
	}
	ahead = max(0, durationOf(-behind))
	ch.report.add("clock of Timestamps", ahead < maxAhead,
		"%v ahead of the server's; if a clock was far ahead once, Timestamps wait for the clocks to pass it", ahead.Round(time.Millisecond))
	return nil
}

// durationOf returns a number of ticks as a duration of at most a few centuries.
func durationOf(ticks int64) time.Duration {
	const most = 1 << 56
	return time.Duration(max(-most, min(ticks, most))) * 100
}

// plan checks that the server reads a page through the index, in both directions.
func (ch *checker) plan() error {
	if !ch.tables {
		return nil // without the tables there is no plan
	}
	for i, sql := range [...]string{scan.Forward, scan.Backward} {
		rows, err := ch.c.Script(ch.ctx, fmt.Sprintf(`PREPARE tr_check_%d (text, bytea, bytea, bytea, bytea, bytea, bigint, bigint) AS %s;
			EXPLAIN (COSTS OFF) EXECUTE tr_check_%[1]d('', '', '', '', '', '', 1, 1)`, i, sql))
		if err != nil {
			ch.report.add("plan of a page", false, "it cannot be shown: %v", failure(err, false))
			return nil
		}
		var plan []string
		for _, row := range rows {
			plan = append(plan, row...)
		}
		if !readsRange(plan) {
			ch.report.add("plan of a page", false, "a page reads more than its rows: %s", strings.Join(plan, "; "))
			return nil
		}
	}
	ch.report.add("plan of a page", true, "a range of the index, in both directions")
	return nil
}

// readsRange reports whether a plan of a scan statement finds the first row of the range in the
// index and reads no row beyond it.
func readsRange(plan []string) bool {
	found := false
	for _, line := range plan {
		switch {
		case strings.Contains(line, "Sort"), strings.Contains(line, "Seq Scan on tr_entities"):
			return false
		case strings.Contains(line, "Index Cond:") && strings.Contains(line, "ROW(p, r) >=") && strings.Contains(line, "ROW(p, r) <"):
			found = true
		}
	}
	return found
}
