package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/store"
)

// Kind is the kind of server.
type Kind uint8

// The kinds.
const (
	PostgreSQL Kind = iota + 1
	YugabyteDB
	CockroachDB
)

// String returns the name of the product.
func (k Kind) String() string {
	switch k {
	case PostgreSQL:
		return "PostgreSQL"
	case YugabyteDB:
		return "YugabyteDB"
	case CockroachDB:
		return "CockroachDB"
	}
	return "unknown server"
}

const (
	connectTimeout = 5 * time.Second
	// lockTimeout and idleTimeout limit what other servers wait for after one of
	// them has died between the two flights of a batch. No commit is waiting then.
	lockTimeout = 10 * time.Second
	idleTimeout = 10 * time.Second
	// deadPeer is how long a connection to a host that vanished stays open.
	deadPeer = 15 * time.Second
)

// settings are set by every connection. The first ones, if set by the role or the database, make the server stop
// waiting for its standby, and show a commit that can be lost; a server that lacks one does not have the
// danger.
var settings = [][2]string{
	{"statement_timeout", "0"},
	{"transaction_timeout", "0"},
	{"client_connection_check_interval", "0"},
	{"synchronous_commit", "on"},
	{"lock_timeout", strconv.Itoa(int(lockTimeout.Milliseconds()))},
	{"idle_in_transaction_session_timeout", strconv.Itoa(int(idleTimeout.Milliseconds()))},
	{"idle_session_timeout", "0"},
	// Every statement of this package reads through an index. Statistics of a table that
	// changed much must not change its plan.
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_bitmapscan", "off"},
	{"jit", "off"},
	{"default_transaction_isolation", "read committed"},
	{"TimeZone", "UTC"},
	// A commit that no longer waits for its standby says so by a warning.
	{"client_min_messages", "warning"},
}

// Dialer makes connections.
type Dialer struct {
	url        string
	allowAsync bool
	now        func() time.Time
	Trips      atomic.Uint64 // round trips of all connections
	newest     atomic.Uint64 // the highest timeline of a PostgreSQL server so far

	mu sync.Mutex
	// +checklocks:mu
	config *pgconn.Config // of the last connection
}

var errURL = errors.New("the URL of the database is malformed: want postgres://USER@HOST:PORT/DATABASE")

// parseError returns the driver's reason to refuse a URL, or the service file and the
// variables that complete it, without the URL. The reason why a text is no URL can quote the
// password.
func parseError(err error) error {
	text := err.Error()
	reason := text[strings.LastIndex(text, "`: ")+1:]
	var refused *pgconn.ParseConfigError
	if !errors.As(err, &refused) || reason == text || strings.Contains(reason, "failed to parse as") {
		return errURL
	}
	return &parameterError{strings.TrimPrefix(reason, ": ")}
}

// parameterError is the driver's reason to refuse a parameter.
type parameterError struct{ reason string }

func (e *parameterError) Error() string {
	return "a parameter of the connection, from the URL, a service file or a PG variable, is refused: " + e.reason
}

// Unwrap returns errors.ErrUnsupported: another try with the same parameters does not help.
func (e *parameterError) Unwrap() error { return errors.ErrUnsupported }

// NewDialer parses a URL. Its errors do not quote the URL, which can have a password.
func NewDialer(url string, allowAsync bool, now func() time.Time) (*Dialer, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, errURL
	}
	d := &Dialer{url: url, allowAsync: allowAsync, now: now}
	config, err := d.parse()
	if err != nil {
		return nil, parseError(err)
	}
	d.config = config // +checklocksignore: nobody else has d
	return d, nil
}

// parse reads the URL, and the files and variables that complete it.
func (d *Dialer) parse() (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "tablerock"
	}
	config.DialFunc = dialConnecting
	config.ValidateConnect = d.validate
	return config, nil
}

// current returns the configuration of the next connection. It reads the files again, as psql does for each
// connection: a password or a certificate may have been replaced. If they cannot be used, or have no password any
// more, the configuration stays as it was: another program may write them.
func (d *Dialer) current() *pgconn.Config {
	config, err := d.parse()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && (config.Password != "" || d.config.Password == "") {
		d.config = config
	}
	return d.config
}

// validate refuses a server so that pgconn tries the next host of the URL: a standby, the
// server that ConnectOther avoids, and a former primary. Such a one accepts connections as
// a primary while the agent that would demote it is stopped, but none of its commits is
// acknowledged.
func (d *Dialer) validate(ctx context.Context, c *pgconn.PgConn) error {
	result := c.ExecParams(ctx, "SELECT current_setting('transaction_read_only'), version()", nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 2 {
		return errNoServer
	}
	readOnly := string(result.Rows[0][0]) == "on"
	if version := string(result.Rows[0][1]); !strings.HasPrefix(version, "PostgreSQL") || strings.Contains(version, "-YB-") {
		if readOnly {
			return ErrStandby
		}
		return nil
	}
	result = c.ExecParams(ctx, "SELECT pg_is_in_recovery(), "+ServerSQL, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 2 {
		return errNoServer
	}
	switch standby := string(result.Rows[0][0]) != "f"; {
	case standby:
		return ErrStandby
	case readOnly:
		return ErrReadOnly
	}
	server := string(result.Rows[0][1])
	if avoid, _ := ctx.Value(avoiding{}).(string); avoid == server {
		return errSameServer
	}
	return d.checkTimeline(server)
}

// checkTimeline refuses a server whose timeline is below that of another one.
func (d *Dialer) checkTimeline(server string) error {
	text, _, _ := strings.Cut(server, " ")
	timeline, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return ErrStandby // it was demoted since
	}
	for {
		newest := d.newest.Load()
		if timeline < newest {
			return errDeposed
		}
		if d.newest.CompareAndSwap(newest, timeline) {
			return nil
		}
	}
}

// dialTCP connects so that a peer that vanishes is noticed within about deadPeer, also
// while the call waits for a commit without a timeout.
func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadPeer / 3, Interval: deadPeer / 3, Count: 3},
		Control:         setUserTimeout,
	}
	return d.DialContext(ctx, network, address)
}

var (
	// ErrStandby means that the server accepts no writes.
	ErrStandby = errors.New("the server is a read-only standby")
	// ErrReadOnly is the ErrStandby of a primary that somebody, or the service that runs it, has made read-only.
	ErrReadOnly error = &Reason{"the server is read-only: default_transaction_read_only is on for it, the database or the user", ErrStandby}
	// ErrAsync means that commits do not wait for a standby, or that the server does not
	// show whether they do.
	ErrAsync = errors.New("commits do not wait for a standby, so a failover loses acknowledged writes")
	// ErrNoStandby is the ErrAsync of PostgreSQL.
	ErrNoStandby error = &Reason{"the server has no synchronous standby (synchronous_standby_names is empty), so a failover loses acknowledged writes", ErrAsync}

	// ErrPooler means that something between keeps the connections to the server.
	ErrPooler = errors.New("the connection is to a pooler such as PgBouncer, which can move it to another server and show commits that no standby has")

	errDeposed    = errors.New("the server is a former primary, which has been replaced (after a restore of an older database, start this process again)")
	errSameServer = errors.New("the server accepts connections, but does not acknowledge a commit: it may wait for a synchronous standby that does not run")

	errHidden error = &Reason{"the server does not show whether its commits wait for a replica, so a failover may lose acknowledged writes", ErrAsync}
)

// Reason is Err with a text that says the reason in place of its own.
type Reason struct {
	Text string
	Err  error
}

// Error returns Text.
func (r *Reason) Error() string { return r.Text }

// Unwrap returns Err.
func (r *Reason) Unwrap() error { return r.Err }

// avoiding is the key of the server that an attempt to connect avoids.
type avoiding struct{}

// ConnectOther is Connect to another server than the one with this identity.
func (d *Dialer) ConnectOther(ctx context.Context, server string) (*Conn, error) {
	return d.Connect(context.WithValue(ctx, avoiding{}, server))
}

// Connect returns a connection that has passed all checks.
func (d *Dialer) Connect(ctx context.Context) (*Conn, error) {
	pg, err := pgconn.ConnectConfig(context.WithValue(ctx, connecting{}, true), d.current())
	if err != nil {
		return nil, ConnectError(ctx, err)
	}
	hijacked, err := pg.Hijack()
	if err != nil {
		return nil, ConnectError(ctx, err)
	}
	c := &Conn{net: hijacked.Conn, front: hijacked.Frontend, tx: hijacked.TxStatus, lastUse: d.now(), trips: &d.Trips}
	// A server that stops answering here would stop the heartbeat, which looks for another one.
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := d.prepare(limited, c, hijacked.PID); err != nil {
		c.Close()
		return nil, ConnectError(ctx, err)
	}
	return c, nil
}

// connecting marks the context of an attempt to connect.
type connecting struct{}

// dialConnecting refuses the dials that pgconn makes without the context of an attempt to
// connect, which are those of CancelRequests. It sends one after each failure of a
// connection, and a server that gets one no longer waits for its standby.
func dialConnecting(ctx context.Context, network, address string) (net.Conn, error) {
	if ctx.Value(connecting{}) == nil {
		return nil, errors.New("a CancelRequest is never sent")
	}
	return dialTCP(ctx, network, address)
}

// prepare sets the settings of a new connection and checks the server, whose process said to be pid.
func (d *Dialer) prepare(ctx context.Context, c *Conn, pid uint32) error {
	k, err := KindOf(ctx, c)
	if err != nil {
		return err
	}
	if err := setAll(ctx, c); err != nil {
		return err
	}
	if k != PostgreSQL {
		if !d.allowAsync {
			return fmt.Errorf("%s: %w", k, errHidden)
		}
		c.Server = k.String()
		return nil
	}
	return d.check(ctx, c, pid)
}

// KindOf asks the server what it is.
func KindOf(ctx context.Context, c *Conn) (Kind, error) {
	rows, err := c.Script(ctx, "SELECT version()")
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, errNoServer
	}
	switch version := rows[0][0]; {
	case strings.HasPrefix(version, "CockroachDB"):
		return CockroachDB, nil
	case strings.HasPrefix(version, "PostgreSQL") && strings.Contains(version, "-YB-"):
		return YugabyteDB, nil
	case strings.HasPrefix(version, "PostgreSQL"):
		return PostgreSQL, nil
	default:
		return 0, errNoServer
	}
}

var errNoServer = errors.New("the server is none of PostgreSQL, YugabyteDB and CockroachDB")

// setAll sets the settings that the server knows.
func setAll(ctx context.Context, c *Conn) error {
	var sql strings.Builder
	sql.WriteString("SELECT s.name, set_config(s.name, s.value, false) FROM (VALUES ")
	for i, s := range settings {
		if i > 0 {
			sql.WriteString(", ")
		}
		fmt.Fprintf(&sql, "('%s', '%s')", s[0], s[1])
	}
	sql.WriteString(") AS s(name, value) WHERE current_setting(s.name, true) IS NOT NULL")
	_, err := c.Script(ctx, sql.String())
	return err
}

// check refuses a PostgreSQL server on which an acknowledged write could be lost, and
// identifies it. Statements to a pooler run in other processes than the one that greeted, and later ones can be of another
// server than c.Server says.
func (d *Dialer) check(ctx context.Context, c *Conn, pid uint32) error {
	rows, err := c.Script(ctx, `SELECT pg_is_in_recovery(), current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
		current_setting('statement_timeout'), coalesce(current_setting('transaction_timeout', true), '0'),
		coalesce(current_setting('client_connection_check_interval', true), '0'), `+ServerSQL+`, pg_backend_pid()`)
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) != 8 {
		return errNoServer
	}
	row := rows[0]
	if row[0] != "f" {
		return ErrStandby
	}
	if row[1] == "" && !d.allowAsync {
		return ErrNoStandby
	}
	if row[7] != strconv.FormatUint(uint64(pid), 10) && !d.allowAsync {
		return ErrPooler
	}
	if row[2] != "on" && row[2] != "remote_apply" {
		return fmt.Errorf("synchronous_commit is %s and cannot be set to on", row[2])
	}
	for i, name := range []string{"statement_timeout", "transaction_timeout", "client_connection_check_interval"} {
		if row[3+i] != "0" {
			return fmt.Errorf("%s is %s and cannot be set to 0", name, row[3+i])
		}
	}
	c.Server = row[6]
	return nil
}

// ServerSQL is an expression that identifies a running server: another one after a
// failover, a promotion or a restart. It depends neither on settings such
// as TimeZone nor on the address of the connection: a server can have several.
const ServerSQL = `CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END
	|| ' ' || (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text`

// ConnectError returns err as what it means for the caller: nothing was sent. It has
// no text that names the user or the database as pgconn's does.
func ConnectError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	tries := []error{err}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) {
		tries = lastTries(connecting.Unwrap())
		err = errors.Join(tries...)
	}
	cause := error(nil)
	switch code := CodeOf(err); {
	case !slices.ContainsFunc(tries, func(try error) bool { return !errors.Is(try, ErrStandby) }):
		cause = store.ErrReadOnly // a primary that is away is not a reason to name another one
	case code == "28P01" || code == "28000" || code == "42501":
		cause = fs.ErrPermission
	}
	if cause != nil {
		return fmt.Errorf("%w: connect to the database: %w (%w)", store.ErrUnavailable, err, cause)
	}
	return fmt.Errorf("%w: connect to the database: %w", store.ErrUnavailable, err)
}

// lastTries returns the errors of the tries of a connection. It leaves out that a server has no TLS where the next
// try, without TLS, is of the same address: with sslmode=prefer, the default, the reason is that of the next try.
func lastTries(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // that of pgconn itself
	if !ok {
		return []error{err}
	}
	tries := joined.Unwrap()
	var left []error
	for i, try := range tries {
		address, refused := strings.CutSuffix(try.Error(), ": tls error: server refused TLS connection")
		if !refused || i == len(tries)-1 || !strings.HasPrefix(tries[i+1].Error(), address+": ") {
			left = append(left, try)
		}
	}
	return left
}
