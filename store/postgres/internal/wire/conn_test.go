package wire

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tablerock-db/tablerock/store"
)

var twoColumns = NewStatement("two_columns", 2, "SELECT 1, 2")

// TestRowsOfWrongStatement answers a flight with rows that its statement cannot return. The
// callers of RoundTrip rely on the number of columns.
func TestRowsOfWrongStatement(t *testing.T) {
	one, two := &pgproto3.DataRow{Values: [][]byte{{1}}}, &pgproto3.DataRow{Values: [][]byte{{1}, {2}}}
	three, complete := &pgproto3.DataRow{Values: [][]byte{{1}, {2}, {3}}}, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
	for _, c := range []struct {
		name    string
		answers []pgproto3.BackendMessage
		ok      bool
	}{
		{"right", []pgproto3.BackendMessage{two, two, complete}, true},
		{"no columns", []pgproto3.BackendMessage{&pgproto3.DataRow{}, complete}, false},
		{"too few columns", []pgproto3.BackendMessage{two, one, complete}, false},
		{"too many columns", []pgproto3.BackendMessage{three, complete}, false},
		{"a row after the last statement", []pgproto3.BackendMessage{two, complete, two}, false},
		{"an answer after the last statement", []pgproto3.BackendMessage{complete, complete}, false},
		{"no answer", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			go answer(server, append(c.answers, &pgproto3.ReadyForQuery{TxStatus: 'I'}))
			conn := &Conn{net: client, front: pgproto3.NewFrontend(client, client), trips: new(atomic.Uint64)}
			conn.Queue(twoColumns)
			_, err := conn.RoundTrip(t.Context(), func(_ int, values [][]byte) error {
				if len(values) != 2 {
					t.Errorf("a row with %d columns is returned", len(values))
				}
				return nil
			})
			var lost *LostError
			if (err == nil) != c.ok || !c.ok && (!errors.As(err, &lost) || !conn.Broken) {
				t.Errorf("error %v, broken %v", err, conn.Broken)
			}
		})
	}
}

// TestLargeFlight sends a flight that commits, of many statements of one MiB, to a server that ends the connection within it. A
// commit that was not sent has not happened.
func TestLargeFlight(t *testing.T) {
	const statements = 10
	large := NewStatement("large", 0, "SELECT 1", OIDBytea)
	for _, c := range []struct {
		received int // statements, before the end of the connection
		unknown  bool
	}{
		{1, false},
		{statements - 2, false},
		{statements, false},
		{statements + 1, true},
	} {
		client, server := net.Pipe()
		go func() {
			back := pgproto3.NewBackend(server, server)
			for n := 0; n < c.received; {
				m, err := back.Receive()
				if _, ok := m.(*pgproto3.Execute); ok || err != nil {
					n++
				}
			}
			_ = server.Close()
		}()
		conn := &Conn{net: client, front: pgproto3.NewFrontend(client, client), trips: new(atomic.Uint64)}
		for range statements {
			conn.Queue(large, make([]byte, sendAfter))
		}
		conn.Queue(CommitStatement)
		_, err := conn.Commit(nil)
		var lost *LostError
		if !errors.As(err, &lost) || !conn.Broken || errors.Is(err, store.ErrOutcomeUnknown) != c.unknown {
			t.Errorf("%d statements received: %v, broken %t", c.received, err, conn.Broken)
		}
	}
}

// answer reads the flight of a client and sends the answers.
func answer(server net.Conn, answers []pgproto3.BackendMessage) {
	defer server.Close()
	back := pgproto3.NewBackend(server, server)
	for {
		m, err := back.Receive()
		if err != nil {
			return
		}
		if _, ok := m.(*pgproto3.Sync); ok {
			break
		}
	}
	back.Send(&pgproto3.ParseComplete{})
	back.Send(&pgproto3.BindComplete{})
	for _, m := range answers {
		back.Send(m)
	}
	_ = back.Flush()
}
