package wire

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tablerock-db/tablerock/store"
)

// TestWarnings commits with the warnings of PostgreSQL 15. One that is not about the wait for the standby does
// not change the outcome: the server gives it to each transaction while transaction ids run out.
func TestWarnings(t *testing.T) {
	warning := func(code, routine, text string) pgproto3.BackendMessage {
		return &pgproto3.NoticeResponse{
			Severity: "WARNING", SeverityUnlocalized: "WARNING", Code: code, Message: text, Routine: routine,
		}
	}
	ids := warning("01000", "GetNewTransactionId", `database "shop" must be vacuumed within 29984363 transactions`)
	multi := warning("01000", "GetNewMultiXactId", `database "shop" must be vacuumed before 29984363 more MultiXactIds are used`)
	canceled := warning("01000", "SyncRepWaitForLSN", "canceling wait for synchronous replication due to user request")
	ended := warning("57P01", "SyncRepWaitForLSN", "canceling the wait for synchronous replication and terminating connection due to administrator command")
	complete := &pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")}
	for _, c := range []struct {
		name    string
		answers []pgproto3.BackendMessage
		want    error
	}{
		{"transaction ids", []pgproto3.BackendMessage{ids, complete}, nil},
		{"multixact ids", []pgproto3.BackendMessage{multi, complete}, nil},
		{"canceled wait", []pgproto3.BackendMessage{complete, canceled}, store.ErrOutcomeUnknown},
		{"canceled wait before another warning", []pgproto3.BackendMessage{complete, canceled, ids}, store.ErrOutcomeUnknown},
		{"ended wait", []pgproto3.BackendMessage{complete, ended}, store.ErrOutcomeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			go answer(server, append(c.answers, &pgproto3.ReadyForQuery{TxStatus: 'I'}))
			conn := &Conn{net: client, front: pgproto3.NewFrontend(client, client), trips: new(atomic.Uint64)}
			conn.Queue(twoColumns)
			if _, err := conn.Commit(nil); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if (conn.Warning != nil) != (c.want != nil) {
				t.Errorf("the warning of the flight is %v", conn.Warning)
			}
		})
	}
}
