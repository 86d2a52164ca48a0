package store

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// The errors that a Store answers with, tested by errors.Is.
var (
	ErrTableExists    = errors.New("table already exists")
	ErrTableNotFound  = errors.New("table not found")
	ErrEntityExists   = errors.New("entity already exists")
	ErrEntityNotFound = errors.New("entity not found")
	// ErrPrecondition says that an entity's ETag is not the one asked for.
	ErrPrecondition = errors.New("the entity has another ETag")
	// ErrInvalid and ErrTooLarge say that an input breaks a rule; errors.As
	// finds the *edm.Error.
	ErrInvalid  = edm.ErrInvalid
	ErrTooLarge = edm.ErrTooLarge
	// ErrLocked says that another holder has the database.
	ErrLocked = errors.New("database is locked")
	// ErrReadOnly says that the database takes no writes: it was opened so, or
	// a write failed earlier. Nothing happened.
	ErrReadOnly = errors.New("database is read-only")
	// ErrNoSpace says that the disk is too full to take the write. Nothing
	// happened.
	ErrNoSpace = errors.New("no space left for writing")
	// ErrNotDatabase says that the directory holds files but no database.
	ErrNotDatabase = errors.New("directory is not a database and not empty")
	// ErrNewerFormat says that a newer version of Tablerock wrote the files.
	ErrNewerFormat = errors.New("database has a newer format")
	// ErrOutcomeUnknown says that a write or a refusal could not be made
	// durable: it may or may not be there after the next open.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrCorrupt says that stored bytes are damaged; errors.As finds the
	// *CorruptError with file and offset.
	ErrCorrupt = corrupt.ErrCorrupt
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// CorruptError reports damaged bytes in a file of the store. errors.As finds it
// in every error that is ErrCorrupt.
type CorruptError struct {
	File   string // the name of the file in its directory
	Offset int64  // where the damaged bytes begin
	What   string // what was found, and what was expected
}

// The conversion of corrupt.Error.As needs equal fields.
var _ = CorruptError(corrupt.Error{})

// Error names the file, the offset and the damage.
func (e *CorruptError) Error() string { return (*corrupt.Error)(e).Error() }

// Is reports whether target is ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// OpError says which Op of a batch failed; nothing happened.
type OpError struct {
	Index    int  // the first op that fails
	Executed bool // found by looking at stored entities, not at the ops alone
	Err      error
}

// Error names the op and its failure.
func (e *OpError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }

// Unwrap returns the failure itself.
func (e *OpError) Unwrap() error { return e.Err }
