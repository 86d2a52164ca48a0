package store

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
)

// The errors of a Store. Compare with errors.Is.
var (
	ErrTableExists    = errors.New("table already exists")
	ErrTableNotFound  = errors.New("table not found")
	ErrEntityExists   = errors.New("entity already exists")
	ErrEntityNotFound = errors.New("entity not found")
	// ErrPrecondition means that the entity does not have the ETag of IfMatch. Read
	// it again before a retry.
	ErrPrecondition = errors.New("the entity has another ETag")
	// ErrInvalid means that an input breaks a rule of the data model. errors.As
	// finds the *edm.Error.
	ErrInvalid = edm.ErrInvalid
	// ErrTooLarge means that a size, a length or a count is above its limit. Such
	// an error is ErrInvalid too.
	ErrTooLarge = edm.ErrTooLarge
	// ErrLocked means that another process or DB has the database open for
	// writing.
	ErrLocked = errors.New("database is locked")
	// ErrReadOnly means that the database accepts no writes: it was opened
	// read-only, an earlier write failed, or the work in the background that makes
	// space for writes fails. Nothing was written.
	ErrReadOnly = errors.New("database is read-only")
	// ErrNoSpace means that the disk is full. Nothing was written.
	ErrNoSpace = errors.New("no space left for writing")
	// ErrNotDatabase means that the directory has files but no database.
	ErrNotDatabase = errors.New("directory is not a database and not empty")
	// ErrNewerFormat means that a newer version of Tablerock wrote the files.
	ErrNewerFormat = feature.ErrNewerFormat
	// ErrOutcomeUnknown means that it is not known whether a write, or the data on which
	// an error depends, became durable: it may or may not be stored. Read before a retry.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrUnavailable means that the store cannot be reached now, or refused the call
	// because it is busy. Nothing was written. Try again.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrCorrupt means that stored bytes are damaged. errors.As finds the
	// *CorruptError.
	ErrCorrupt = corrupt.ErrCorrupt
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// CorruptError reports damaged bytes in a file of the store. errors.As finds it
// in every error that is ErrCorrupt.
type CorruptError struct {
	File   string // the name of the file in its directory
	Offset int64  // where the damaged bytes begin
	What   string // what was found, and what was expected
}

// corrupt.Error.As requires equal fields.
var _ = CorruptError(corrupt.Error{})

// Error names the file, the offset and the damage.
func (e *CorruptError) Error() string { return (*corrupt.Error)(e).Error() }

// Is reports whether target is ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// OpError reports the operation that made Apply fail. Nothing was written.
type OpError struct {
	Index    int   // of the first op that fails
	Executed bool  // the failure depends on stored data, not on the ops alone
	Err      error // the failure
}

// Error returns the index and the failure.
func (e *OpError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }
