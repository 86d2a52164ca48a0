package postgres

import (
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// ErrAsync means that the commits of a server do not wait for a standby, or that it does not
// show whether they do. Options.AllowAsync accepts such a server.
var ErrAsync = wire.ErrAsync

// ErrReadOnly means that a server is no standby, but that default_transaction_read_only is on. Managed services set
// it when the disk is nearly full.
var ErrReadOnly = wire.ErrReadOnly

// ErrPooler means that the connection is not to a server but to a pooler of connections. Options.AllowAsync accepts it.
var ErrPooler = wire.ErrPooler

// The reasons to refuse a server or a database.
var (
	errNoSchema  = &wire.Reason{Text: "the database has no tables of Tablerock; create them with: tablerock backend init URL", Err: store.ErrNotDatabase}
	errOldSchema = &wire.Reason{Text: "the tables are of an older version; upgrade them with: tablerock backend init URL", Err: store.ErrNotDatabase}
)

// damaged returns the reason to refuse a database whose table does not have the row that Init makes.
func damaged(table string) error {
	return &wire.Reason{Text: table + " does not have its one row: the database is damaged, or the restore of a dump did not end; " +
		"restore the whole database again", Err: store.ErrNotDatabase}
}
