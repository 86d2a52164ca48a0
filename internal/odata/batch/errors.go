package batch

import "fmt"

// Kind is how a batch is refused.
type Kind uint8

// The kinds of Error.
const (
	BadType     Kind = iota + 1 // the type of the batch or of a part is none that belongs there
	BadBoundary                 // a boundary is missing, too long, or of other characters
	Unended                     // an envelope does not end with its boundary
	Empty                       // an envelope without an operation
	Misplaced                   // a change outside a changeset, a query in one or beside something, a changeset in or beside another
	BadHeader                   // a line is no header, one of them too many, or a value that cannot be
	BadRequest                  // a line is no method, target and version
	BadLength                   // Content-Length is not the length of the body
)

// Error says what in a batch is wrong.
type Error struct {
	Kind      Kind
	Operation int    // the operation at fault, from 0, or the one that should begin there
	What      string // what is there, and what should be
}

// Error names the operation and the fault.
func (e *Error) Error() string {
	return fmt.Sprintf("operation %d of the batch: %s", e.Operation, e.What)
}

// maxShown is the number of bytes of a batch that a message shows.
const maxShown = 64

// quote shows s in a message.
func quote[T string | []byte](s T) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q...", s[:maxShown])
	}
	return fmt.Sprintf("%q", s)
}
