// Package wire is the protocol between store/postgres and its server: connections that
// never cancel a statement, prepared statements, flights of them, the pool, and the checks of
// a new connection.
package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Statement is a prepared statement. A connection prepares it in the flight that first
// uses it, so its name is valid on every connection. Parameters and results have the
// binary format.
type Statement struct {
	number  int // index in conn.prepared
	name    string
	columns int // number of columns of its rows
	sql     string
	params  []uint32 // OIDs
}

// OIDs of the types of parameters.
const (
	OIDBytea      = 17
	OIDInt8       = 20
	OIDText       = 25
	OIDByteaArray = 1001
)

var statements atomic.Int32 // number of statements of the package

// NewStatement returns a statement whose rows have a number of columns, 0 if it returns none.
// Call it for package variables only: each connection keeps what it prepares.
func NewStatement(name string, columns int, sql string, params ...uint32) *Statement {
	return &Statement{number: int(statements.Add(1) - 1), name: "tr_" + name, columns: columns, sql: sql, params: params}
}

// Conn is a connection to the server, used by one goroutine at a time. It speaks the
// protocol by itself after pgconn has connected: pgconn sends a CancelRequest when a
// connection fails or a ctx ends, which makes PostgreSQL show a commit that waits for
// its standby. This one never cancels.
type Conn struct {
	net      net.Conn
	front    *pgproto3.Frontend
	Server   string          // identifies the running server: see serverOf
	prepared []bool          // by number of the statement
	flight   []*Statement    // those queued
	pending  int             // bytes of arguments of those that are not sent
	sendErr  error           // of the part of the flight that Queue has sent
	parsing  []*Statement    // those of the flight that the server has not prepared yet
	tx       byte            // 'I' idle, 'T' in a transaction, 'E' in a failed one
	Warning  *pgconn.PgError // of the last flight, nil if there was none; see ofIDs
	Broken   bool            // the connection is not used again
	lastUse  time.Time
	trips    *atomic.Uint64
}

var binaryFormat = []int16{1}

// sendAfter is how many bytes of arguments wait at most before Queue sends them. The server ends a transaction that
// waits long for its next statement, as for the 100 MiB of a batch that a busy client must copy first.
const sendAfter = 1 << 20

// Queue adds s to the next flight. The flight does not retain args after roundTrip. It may send the statements before s.
func (c *Conn) Queue(s *Statement, args ...[]byte) {
	if c.pending >= sendAfter && c.sendErr == nil {
		c.sendErr, c.pending = c.front.Flush(), 0
	}
	if c.sendErr != nil {
		return // RoundTrip returns it
	}
	for len(c.prepared) <= s.number {
		c.prepared = append(c.prepared, false)
	}
	if !c.prepared[s.number] {
		c.front.SendParse(&pgproto3.Parse{Name: s.name, Query: s.sql, ParameterOIDs: s.params})
		c.prepared[s.number] = true
		c.parsing = append(c.parsing, s)
	}
	c.front.SendBind(&pgproto3.Bind{
		PreparedStatement: s.name, ParameterFormatCodes: binaryFormat, Parameters: args, ResultFormatCodes: binaryFormat,
	})
	c.front.SendExecute(&pgproto3.Execute{})
	c.flight = append(c.flight, s)
	for _, a := range args {
		c.pending += len(a)
	}
}

// LostError is the failure of a connection within a flight.
type LostError struct {
	Sent bool // the server may have received the whole flight
	Err  error
}

// Error says what failed.
func (e *LostError) Error() string { return "connection to the database lost: " + e.Err.Error() }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// answerDelay is how long a call waits for the answer after its ctx ended. Within this
// time a server that works answers, and the connection is kept.
const answerDelay = time.Second

// RoundTrip sends the flight and waits for the answers. It calls row for each row of
// Statement i of the flight; the values are valid until row returns. If row fails,
// RoundTrip reads the other answers and returns the error of row. It returns the command tag's number of rows for each
// Statement. Other errors are *LostError, and *pgconn.PgError for an answer of the server:
// then it executed none of the statements from the failed one on. If ctx ends, roundTrip
// waits for answerDelay and then breaks the connection. It sends all before it reads, so the
// answers to a long flight must fit the buffers of the socket: while they do not, the server
// reads no more.
func (c *Conn) RoundTrip(ctx context.Context, row func(i int, values [][]byte) error) (rows []int64, err error) {
	flight := c.flight
	c.flight, c.pending = c.flight[:0], 0
	if c.sendErr != nil {
		return nil, c.lost(ctx, false, c.sendErr)
	}
	c.front.SendSync(&pgproto3.Sync{})
	c.Warning = nil
	c.trips.Add(1)
	if ctx.Done() != nil {
		defer c.watch(ctx)()
	}
	if err := c.front.Flush(); err != nil {
		return nil, c.lost(ctx, !pgconn.SafeToRetry(err), err)
	}
	return c.receive(ctx, flight, row)
}

// watch breaks the connection some time after ctx ended, until the returned function is
// called.
func (c *Conn) watch(ctx context.Context) func() {
	timer := make(chan struct{})
	done := make(chan struct{})
	expired := false // valid after done is closed
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		t := time.NewTimer(answerDelay)
		defer t.Stop()
		select {
		case <-t.C:
			expired = true
			_ = c.net.SetDeadline(time.Unix(1, 0)) // the read fails
		case <-timer:
		}
	})
	return func() {
		if !stop() {
			close(timer)
			if <-done; expired {
				c.Close() // also if the answer came at the same time
			}
		}
	}
}

// lost closes the connection after err.
func (c *Conn) lost(ctx context.Context, sent bool, err error) error {
	c.Close()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &LostError{Sent: sent, Err: err}
}

// Close closes the connection without a word to the server, which rolls back an open
// transaction.
func (c *Conn) Close() {
	c.Broken = true
	c.Abandon()
}

// Abandon makes the call that uses the connection fail as after a lost connection. Any goroutine may call
// it.
func (c *Conn) Abandon() { _ = c.net.Close() }

// receive reads the answers to a flight up to ReadyForQuery, or those to a script, which is an
// empty flight.
func (c *Conn) receive(ctx context.Context, flight []*Statement, row func(i int, values [][]byte) error) (rows []int64, failure error) {
	n := len(flight)
	rows = make([]int64, 0, n)
	for {
		m, err := c.front.Receive()
		if err != nil {
			return nil, c.lost(ctx, true, err)
		}
		switch m := m.(type) {
		case *pgproto3.ParseComplete:
			c.parsing = c.parsing[min(1, len(c.parsing)):]
		case *pgproto3.DataRow:
			if n > 0 && (len(rows) == n || len(m.Values) != flight[len(rows)].columns) {
				return nil, c.lost(ctx, true, errAnswers)
			}
			if failure == nil && row != nil {
				failure = row(len(rows), m.Values)
			}
		case *pgproto3.CommandComplete:
			if n > 0 && len(rows) == n {
				return nil, c.lost(ctx, true, errAnswers)
			}
			rows = append(rows, affected(m.CommandTag))
		case *pgproto3.ErrorResponse:
			refusal := pgconn.ErrorResponseToPgError(m)
			for _, s := range c.parsing { // the server skips them
				c.prepared[s.number] = false
			}
			c.parsing = c.parsing[:0]
			if refusal.SeverityUnlocalized == "FATAL" || refusal.SeverityUnlocalized == "PANIC" {
				c.Close()
				return nil, refusal
			}
			if dropsPlan(refusal.Code) {
				c.Broken = true
			}
			failure = refusal
		case *pgproto3.NoticeResponse:
			notice := pgconn.ErrorResponseToPgError((*pgproto3.ErrorResponse)(m))
			if notice.SeverityUnlocalized == "WARNING" && !ofIDs(notice) {
				c.Warning = notice
			}
		case *pgproto3.ReadyForQuery:
			c.tx, c.parsing = m.TxStatus, nil
			if failure == nil && n > 0 && len(rows) < n {
				return nil, c.lost(ctx, true, errAnswers)
			}
			return rows, failure
		}
	}
}

var errAnswers = errors.New("the number of answers, or of their columns, is not that of the statements")

// dropsPlan reports whether a connection with prepared statements is of no more use after
// an error: the statement is gone, or a column of the schema changed.
func dropsPlan(code string) bool { return code == "26000" || code == "0A000" }

// ofIDs reports whether a warning says that transaction ids, or those of row locks, run out. The server gives
// it to each transaction, from 40 million ids before the end, and has the code of a canceled wait for the standby too.
// The name of a routine is the same in every language.
func ofIDs(w *pgconn.PgError) bool {
	return w.Routine == "GetNewTransactionId" || w.Routine == "GetNewMultiXactId"
}

// affected returns the number at the end of a command tag, such as "INSERT 0 1", and -1 for
// a ROLLBACK.
func affected(tag []byte) int64 {
	if string(tag) == "ROLLBACK" {
		return -1
	}
	n, unit := int64(0), int64(1)
	for i := len(tag) - 1; i >= 0 && tag[i] >= '0' && tag[i] <= '9'; i-- {
		n += int64(tag[i]-'0') * unit
		unit *= 10
	}
	return n
}

// Script executes statements without parameters in one transaction, or as the text says, and
// returns the rows of all, as text. The caller checks their number and that of their columns.
func (c *Conn) Script(ctx context.Context, sql string) (rows [][]string, err error) {
	c.front.SendQuery(&pgproto3.Query{String: sql})
	c.Warning = nil
	c.trips.Add(1)
	if ctx.Done() != nil {
		defer c.watch(ctx)()
	}
	if err := c.front.Flush(); err != nil {
		return nil, c.lost(ctx, !pgconn.SafeToRetry(err), err)
	}
	_, err = c.receive(ctx, nil, func(_ int, values [][]byte) error {
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = string(v)
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// Rollback ends an open transaction, so that the connection can return to the pool. If ctx has ended, it waits
// for answerDelay and then breaks the connection.
func (c *Conn) Rollback(ctx context.Context) {
	if c.Broken || c.tx == 'I' {
		return
	}
	c.Queue(rollbackStatement)
	if _, err := c.RoundTrip(ctx, nil); err != nil && !c.Broken {
		c.Close()
	}
}

var (
	// BeginStatement begins a transaction.
	BeginStatement = NewStatement("begin", 0, "BEGIN ISOLATION LEVEL READ COMMITTED")
	// CommitStatement commits a transaction.
	CommitStatement   = NewStatement("commit", 0, "COMMIT")
	rollbackStatement = NewStatement("rollback", 0, "ROLLBACK")
)

// Int8Arg returns the parameter of a bigint.
func Int8Arg(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// ByteaArray returns the array parameter of n elements.
func ByteaArray(n int, element func(i int) []byte) []byte {
	size := arrayHeader
	for i := range n {
		size += 4 + len(element(i))
	}
	b := appendArrayHeader(make([]byte, 0, size), n, OIDBytea)
	for i := range n {
		e := element(i)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(e))), e...)
	}
	return b
}

const arrayHeader = 20

// appendArrayHeader appends the header of an array of one dimension without nulls.
func appendArrayHeader(b []byte, n int, oid uint32) []byte {
	for _, v := range [...]uint32{1, 0, oid, uint32(n), 1} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// Int8Of returns the bigint in a result.
func Int8Of(v []byte) (int64, error) {
	if len(v) != 8 {
		return 0, fmt.Errorf("the database answers %d bytes for a bigint", len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

// RefusalOf returns the answer of the server in err, nil if there is none.
func RefusalOf(err error) *pgconn.PgError {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}

// CodeOf returns the SQLSTATE of the answer in err, "" if there is none.
func CodeOf(err error) string {
	if refusal := RefusalOf(err); refusal != nil {
		return refusal.Code
	}
	return ""
}
