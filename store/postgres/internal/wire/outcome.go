package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/store"
)

// Transient reports whether err is an answer after which the whole transaction can run
// again: it lost a race against another one, and nothing of it happened.
func Transient(err error) bool {
	switch CodeOf(err) {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"23505", // unique_violation: the key was inserted since
		"25P03", // idle_in_transaction_session_timeout: the flight with COMMIT came too late
		"22012", // division_by_zero: a Timestamp would not increase, see beat.go of store/postgres
		"26000", // the prepared statement is gone; the connection is not used again
		"0A000": // a column changed since the statement was prepared
		return true
	}
	return false
}

// Unknown reports whether a flight that can commit, and that failed with err, may have
// committed. Only an answer of the server says that it has not, and not one about the end of
// the connection or of the server.
func Unknown(err error) bool {
	var lost *LostError
	if errors.As(err, &lost) {
		return lost.Sent
	}
	code := CodeOf(err)
	if len(code) != 5 {
		return false
	}
	// A server that fails to sync its log ends with the code of the failure, such as 58030, and
	// its recovery can find the commit.
	if s := RefusalOf(err).SeverityUnlocalized; s == "PANIC" || s == "FATAL" && code != "25P03" {
		return true
	}
	switch code {
	case "57P01", "57P02", "40003", // admin_shutdown, crash_shutdown, statement_completion_unknown
		"57014", // query_canceled: of a commit that waits it is a warning, but be careful
		"XX000": // internal_error, of a commit that fails half-way in CockroachDB and YugabyteDB
		return true
	}
	return code[:2] == "08"
}

// ShutsDown reports whether err is an answer of a server that ends, or that ends this
// connection.
func ShutsDown(err error) bool {
	switch CodeOf(err) {
	case "57P01", "57P02", "57P03", "57P05":
		return true
	}
	return false
}

// ErrLostRace starts a transaction over: what it read has changed since.
var ErrLostRace = errors.New("another transaction was faster")

// Commit sends a flight that commits, or one statement that is a transaction by itself. It
// waits for the outcome, whatever becomes of the caller. It returns store.ErrOutcomeUnknown if
// the server may have committed without an answer, or did not wait for its standby. After every other
// error nothing happened.
func (c *Conn) Commit(row func(i int, values [][]byte) error) ([]int64, error) {
	rows, err := c.RoundTrip(context.Background(), row)
	if err != nil {
		if Unknown(err) {
			return nil, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		}
		return nil, err
	}
	if w := c.Warning; w != nil && (w.Code == "01000" || w.Code == "57P01") {
		// Somebody ended the wait for the standby: the commit is visible and can be lost.
		return nil, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, w)
	}
	if n := len(rows); n > 0 && rows[n-1] == -1 {
		return nil, ErrLostRace // COMMIT of a transaction that had failed
	}
	return rows, nil
}
