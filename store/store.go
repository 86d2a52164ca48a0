package store

import (
	"context"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// Store holds the tables of one account. All methods may be called
// concurrently. ctx is checked until an operation enters the log; from then on
// the call waits for its outcome.
//
// Every method that takes a table's name refuses one that no table can have
// with an *edm.Error, before it looks for the table. A Get, View or DeleteTable
// of a thing that is not there is told so by a sentinel, and so is a Get or View
// of a key that no entity can have: ErrEntityNotFound. After Close every method
// returns ErrClosed.
type Store interface {
	// CreateTable makes an empty table. Names are compared without regard to
	// ASCII case and keep the spelling of creation. It fails with *edm.Error or
	// ErrTableExists.
	CreateTable(ctx context.Context, table string) error
	// DeleteTable removes a table with all its entities and its metadata, or
	// fails with ErrTableNotFound.
	DeleteTable(ctx context.Context, table string) error
	// Tables lists tables in the order of their case-folded names, from the
	// folded name from (inclusive; "" is the first), at most limit (0 = all).
	// from is folded and need not be a legal name.
	Tables(ctx context.Context, from string, limit int) ([]TableInfo, error)
	// Get returns a copy of an entity, or ErrTableNotFound or ErrEntityNotFound.
	Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error)
	// View calls read with an entity in place; the row lives until read
	// returns, and View returns read's error. It fails as Get does, without
	// calling read.
	View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error
	// Query starts a query. It never fails at once: a missing table, like every
	// other failure, is the cursor's Err.
	Query(ctx context.Context, table string, q Query) Cursor
	// Apply carries out one to 100 operations on one partition, all or nothing,
	// and returns a Result for each; Timestamps rise from each Apply to the next
	// that begins after it returned. A failing operation is an *OpError;
	// Checker.Check says which failure comes first. ops and all they refer to
	// are the caller's again when Apply returns.
	Apply(ctx context.Context, table string, ops ...Op) ([]Result, error)
	// TableMeta returns a copy of a table's metadata, nil if none was set.
	TableMeta(ctx context.Context, table string) ([]byte, error)
	// SetTableMeta stores at most MaxMetaBytes of metadata with a table; empty
	// clears it. It goes when the table goes.
	SetTableMeta(ctx context.Context, table string, meta []byte) error
	// AccountMeta returns a copy of the account's metadata, nil if none was set.
	AccountMeta(ctx context.Context) ([]byte, error)
	// SetAccountMeta stores at most MaxMetaBytes of metadata with the account;
	// empty clears it.
	SetAccountMeta(ctx context.Context, meta []byte) error
	// Close refuses new calls, lets started commits finish and releases
	// everything. A second Close returns nil.
	Close() error
}

// MaxMetaBytes is the most metadata that a table or the account can carry.
const MaxMetaBytes = 64 << 10

// TableInfo describes a table.
type TableInfo struct {
	Name    string    // in the spelling of its creation
	Created edm.Ticks // when it was created
}

// Query says which entities to return. The zero Query returns all.
type Query struct {
	// Filter keeps matching entities; nil keeps all.
	Filter *filter.Expr
	// Select names the custom properties that rows show; nil shows all. Key and
	// Timestamp are always there.
	Select []string
	// From is the key to start at, inclusive; with Reverse, the upper end. Nil
	// starts at the table's first (with Reverse, last) entity. It need not be a
	// key that an entity can have, but text that is not valid UTF-8 has no place
	// in the order and fails with an *edm.Error.
	From *edm.Key
	// Reverse returns entities in descending order of their keys.
	Reverse bool
	// Limit is the greatest number of rows to return; 0 is no limit.
	Limit int
	// Budget is the greatest number of entities to examine; 0 is no limit.
	Budget int
}

// Cursor walks the result of a Query, which is the state at one moment, that of
// the call of Query. It is used by one goroutine and must be closed.
type Cursor interface {
	// Next moves to the next row. It returns false at the end of the result, at
	// Limit or Budget, on failure, and when the query's ctx ends.
	Next() bool
	// Row returns the current row, valid until the next call of Next or Close.
	Row() edm.Row
	// Resume returns, once Next has returned false, the key from which another
	// Query continues (its From), also after a page that matched nothing and
	// after the end of ctx. It is nil when nothing can follow.
	Resume() *edm.Key
	// Err returns the failure that ended the walk, ctx's own error if ctx
	// ended, nil at the end of the result, at Limit and at Budget.
	Err() error
	// Close releases what the cursor holds. A second Close returns nil.
	Close() error
}

// Examiner is what a Cursor may be, too.
type Examiner interface {
	// Examined returns how many entities the cursor has looked at so far, those
	// that did not match among them. It is called before Close, by the goroutine
	// that uses the cursor.
	Examined() int
}
