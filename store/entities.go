package store

import (
	"iter"

	"github.com/tablerock-db/tablerock/edm"
)

// Entities returns the remaining rows of c as entities that own their memory. If c
// fails, the last pair is its error with a zero Entity. The loop closes c when it
// ends, also by break. The sequence can be ranged over once; range over it, or
// close c.
func Entities(c Cursor) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) {
		// For a loop that breaks or panics. The second Close returns nil.
		defer c.Close()
		for c.Next() {
			if !yield(edm.EntityOf(c.Row()), nil) {
				return
			}
		}
		if err := end(c); err != nil {
			yield(edm.Entity{}, err)
		}
	}
}

// end closes c, whose Next has returned false, and returns its error or that of Close.
func end(c Cursor) error {
	err := c.Err()
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	return err
}
