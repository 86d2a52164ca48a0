package batch

import "fmt"

// Kind classifies errors of a batch.
type Kind uint8

// The kinds of Error.
const (
	BadType      Kind = iota + 1 // the batch or an operation has an invalid Content-Type
	BadBoundary                  // a boundary is missing, too long, or has an invalid character
	Unterminated                 // an envelope does not end with its closing boundary
	Empty                        // an envelope has no operation
	Misplaced                    // a change outside a changeset, a query in one or beside anything, a changeset in or beside another
	BadHeader                    // an invalid header line, too many lines, or an invalid value
	BadRequest                   // a line is not a method, a target and a version
	BadLength                    // Content-Length does not match the body
	Blank                        // the only part of a changeset has no content
)

// Error is an error in a batch.
type Error struct {
	Kind      Kind
	Operation int    // the index of the invalid operation, or of the one that was expected
	What      string // what was found and what is valid
}

// Error returns the operation's index and What.
func (e *Error) Error() string {
	return fmt.Sprintf("operation %d of the batch: %s", e.Operation, e.What)
}

// maxShown limits the bytes of a batch that a message shows.
const maxShown = 64

// quote returns s quoted for a message.
func quote[T string | []byte](s T) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q...", s[:maxShown])
	}
	return fmt.Sprintf("%q", s)
}
