package wire

import (
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestUnknown checks which failures of a flight with a commit leave its outcome open, and which
// allow to run the transaction again.
func TestUnknown(t *testing.T) {
	answer := func(code string) error { return &pgconn.PgError{Code: code, Severity: "ERROR"} }
	for _, c := range []struct {
		name               string
		err                error
		unknown, transient bool
	}{
		{"nothing sent", &LostError{Sent: false, Err: io.EOF}, false, false},
		{"sent", &LostError{Sent: true, Err: io.EOF}, true, false},
		{"serialization failure", answer("40001"), false, true},
		{"deadlock", answer("40P01"), false, true},
		{"unique violation", answer("23505"), false, true},
		{"lock timeout", answer("55P03"), false, false},
		{"read-only", answer("25006"), false, false},
		{"disk full", answer("53100"), false, false},
		{"failed sync of the log", &pgconn.PgError{Code: "58030", SeverityUnlocalized: "PANIC"}, true, false},
		{"failed read", &pgconn.PgError{Code: "58030", SeverityUnlocalized: "ERROR"}, false, false},
		{"full disk of the log", &pgconn.PgError{Code: "53100", SeverityUnlocalized: "PANIC"}, true, false},
		{"end of the session", &pgconn.PgError{Code: "XX001", SeverityUnlocalized: "FATAL"}, true, false},
		{"idle transaction", &pgconn.PgError{Code: "25P03", SeverityUnlocalized: "FATAL"}, false, true},
		{"administrator", answer("57P01"), true, false},
		{"crash", answer("57P02"), true, false},
		{"connection", answer("08006"), true, false},
		{"completion unknown", answer("40003"), true, false},
		{"another error", errors.New("another"), false, false},
	} {
		if got := Unknown(c.err); got != c.unknown {
			t.Errorf("%s: unknown %v, want %v", c.name, got, c.unknown)
		}
		if got := Transient(c.err); got != c.transient {
			t.Errorf("%s: transient %v, want %v", c.name, got, c.transient)
		}
	}
}
