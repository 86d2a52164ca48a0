package store

import (
	"iter"

	"github.com/tablerock-db/tablerock/edm"
)

// Entities gives the rows that c has left as entities that own their memory,
// and closes c. A failure of c is the last pair, with a zero Entity. The
// sequence can be ranged over once; c is closed also when the loop ends early.
func Entities(c Cursor) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) {
		// Close may be called twice: this one is for a loop that breaks or
		// panics.
		defer c.Close()
		for c.Next() {
			if !yield(edm.EntityOf(c.Row()), nil) {
				return
			}
		}
		err := c.Err()
		if closeErr := c.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			yield(edm.Entity{}, err)
		}
	}
}
