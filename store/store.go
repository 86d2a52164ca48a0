package store

import (
	"context"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// Store has the tables of one account. All methods may be called concurrently.
//
// A method returns the error of ctx if ctx ends before a write begins to become durable.
// After that it waits for the outcome. A store that cannot serve a call now returns
// ErrUnavailable, and the call had no effect.
//
// Every method that takes the name of a table returns an *edm.Error for an illegal
// name. Get and View return ErrEntityNotFound for an illegal key. After Close every
// method returns ErrClosed.
type Store interface {
	// CreateTable creates an empty table, or returns ErrTableExists. Names are
	// compared without regard to ASCII case and keep the spelling of CreateTable.
	CreateTable(ctx context.Context, table string) error
	// DeleteTable removes a table with its entities and metadata, or returns
	// ErrTableNotFound.
	DeleteTable(ctx context.Context, table string) error
	// Tables returns at most limit tables (0: all) in the order of their folded
	// names (see edm.FoldTableName). It begins at the name from, inclusive, which
	// need not be legal.
	Tables(ctx context.Context, from string, limit int) ([]TableInfo, error)
	// Get returns a copy of an entity, ErrTableNotFound or ErrEntityNotFound.
	Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error)
	// View calls read with an entity, without a copy. The row is valid until read
	// returns. View returns the error of read, or fails like Get without a call of
	// read.
	View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error
	// Query starts a query. All errors, also for a missing table, are reported by
	// the Err of the cursor.
	Query(ctx context.Context, table string, q Query) Cursor
	// Apply executes 1 to 100 operations on one partition, all or none of them,
	// and returns a Result for each. If an operation fails, the error is an
	// *OpError; see CheckBatch for the order of the checks. The store does not retain
	// ops or their memory.
	//
	// The Timestamp of an operation is later than each earlier one of the same key in a
	// table of this name, also if the entity or the table was deleted in between. So no
	// two contents of a key have the same ETag. Across keys Timestamps promise no order.
	Apply(ctx context.Context, table string, ops ...Op) ([]Result, error)
	// TableMeta returns a copy of the metadata of a table, nil if there is none.
	TableMeta(ctx context.Context, table string) ([]byte, error)
	// SetTableMeta stores at most 64 KiB of metadata with a table. Empty
	// metadata removes it; DeleteTable does too.
	SetTableMeta(ctx context.Context, table string, meta []byte) error
	// AccountMeta returns a copy of the metadata of the account, nil if there is
	// none.
	AccountMeta(ctx context.Context) ([]byte, error)
	// SetAccountMeta stores at most 64 KiB of metadata with the account.
	// Empty metadata removes it.
	SetAccountMeta(ctx context.Context, meta []byte) error
	// Close rejects new calls, waits for started commits and releases all
	// resources. A second Close returns nil.
	Close() error
}

// TableInfo describes a table.
type TableInfo struct {
	Name    string    // in the spelling of CreateTable
	Created edm.Ticks // the time of CreateTable
}

// TableStats has the figures of a table at one time, for a backend that has them.
type TableStats struct {
	Name string // in the spelling of CreateTable
	// Entities is an estimate unless Exact is set: entities that were overwritten or
	// deleted can count.
	Entities int64
	Exact    bool
	Bytes    int64 // about the size of the table, in files and in memory
}

// Query selects entities of a table. The zero Query selects all, in ascending order
// of their keys. The memory of Select and From belongs to the caller, who may change it
// after the call of Store.Query.
type Query struct {
	// Filter keeps the entities that match; nil keeps all.
	Filter *filter.Expr
	// Select names the custom properties of the rows; nil selects all, and an empty
	// Select none. The rows have those that exist, in their stored order. Rows always
	// have Key and Timestamp.
	Select []string
	// From is the key at which to start, inclusive. Nil starts at the first entity
	// of the table, or with Reverse at the last. From need not be a legal key, but
	// must be valid UTF-8.
	From *edm.Key
	// Reverse returns entities in descending order of their keys.
	Reverse bool
	// Limit is the maximum number of rows to return; 0 means no limit. It is
	// ErrInvalid if it is negative, as are Budget and BudgetBytes.
	Limit int
	// Budget is the maximum number of entities to examine, also those that do not
	// match; 0 means no limit. Entities outside the Ranges of Filter do not count, nor
	// do those that the Store excludes without reading them, as by the bounds of a
	// group of entities. An entity of which the Store reads several versions, in
	// several files, can count for each of them.
	Budget int
	// BudgetBytes is the size of the rows to return; 0 means no limit. The row that
	// reaches it is the last one, so the rows exceed it by less than one row. A Store
	// measures rows in its own encoding: at least the bytes of their Strings and
	// Binaries, at most twice the edm.EntitySize of their entities.
	BudgetBytes int
}

// Cursor iterates over the result of a Query. Each row is the state of its entity at some
// time after the call of Query; a Store may promise that all are of one time. The result
// has each matching entity that does not change meanwhile, and no key twice. Use a Cursor
// from one goroutine, and close it.
type Cursor interface {
	// Next advances to the next row. It returns false at the end of the result, at
	// Limit, Budget or BudgetBytes, after an error, and when the ctx of the query ends.
	Next() bool
	// Row returns the current row. It is valid until the next call of Next,
	// ColumnCursor.NextColumns or Close.
	Row() edm.Row
	// Resume returns the From of the query that continues this one. Call it after Next
	// has returned false, also after a page without rows. Without an error, nil means
	// that no entity in the Ranges of the Filter can follow, as after a page that ends
	// with the last of them; another key is in these ranges and is not From. If Err is
	// the error of ctx or ErrUnavailable, nil means that no row was returned and the
	// query must be repeated with its own From, because the first key of a descending
	// order may be unknown. After another error Resume has no meaning.
	Resume() *edm.Key
	// Err returns the error that ended the iteration, the error of ctx if ctx ended
	// before the end of the result, and nil at the end of the result, at Limit, at
	// Budget and at BudgetBytes.
	Err() error
	// Close releases the resources of the cursor. A second Close returns nil.
	Close() error
}

// Pinger is an optional interface of a Store that depends on a server. Its cursors may read
// ahead of Next: give their queries a BudgetBytes, or a Limit.
type Pinger interface {
	// Ping returns nil if the Store can serve reads and writes now, and otherwise the
	// reason, which is ErrUnavailable or ErrClosed, or the error of ctx. It has no effect.
	Ping(ctx context.Context) error
}

// Examiner is an optional interface of a Cursor.
type Examiner interface {
	// Examined returns the number of entities that the cursor has examined so far,
	// also those that do not match, as Query.Budget counts them. Call it before
	// Close, from the goroutine that uses the cursor.
	Examined() int
}

// Explainer is an optional interface of a Cursor.
type Explainer interface {
	// Explain returns what the query has to read. Call it before Next, from the
	// goroutine that uses the cursor.
	Explain() (Plan, error)
}

// Plan counts the groups of rows of a table in sorted files. Rows in memory are in no group.
type Plan struct {
	Groups   int // of the table
	InRanges int // of Groups, those that can have keys of the query
	Excluded int // of InRanges, those whose bounds exclude that a row matches
}
