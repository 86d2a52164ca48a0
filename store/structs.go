package store

import (
	"context"
	"iter"

	"github.com/tablerock-db/tablerock/edm"
)

// Get returns an entity as a struct, which edm.Unmarshal sets. It fails like the Get
// of a Store, and with an *edm.FieldError for a property that does not fit its field.
func Get[T any](ctx context.Context, s Store, table string, key edm.Key) (T, error) {
	var v T
	err := s.View(ctx, table, key, func(r edm.Row) error { return edm.Unmarshal(r, &v) })
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// All returns a sequence of the entities that q selects, as structs, which
// edm.Unmarshal sets. It starts a query when it is ranged over, each time anew. If
// the query fails, or a property does not fit its field, the last pair has the error
// and a zero T.
func All[T any](ctx context.Context, s Store, table string, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		c := s.Query(ctx, table, q)
		// For a loop that breaks or panics. The second Close returns nil.
		defer c.Close()
		var v, zero T // v is on the heap, once for all rows
		for c.Next() {
			v = zero
			if err := edm.Unmarshal(c.Row(), &v); err != nil {
				yield(zero, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		if err := end(c); err != nil {
			yield(zero, err)
		}
	}
}

// Upsert stores structs of one partition, or pointers to structs, all or none of
// them. Each becomes the entity that edm.Marshal returns and is stored by an
// InsertOrReplace, so that Get returns it again. For other operations on a struct,
// give that entity to Insert, Replace and the like. Upsert returns the errors of
// edm.Marshal and of Apply.
func Upsert[T any](ctx context.Context, s Store, table string, structs ...T) ([]Result, error) {
	ops := make([]Op, len(structs))
	for i := range structs {
		e, err := edm.Marshal(&structs[i])
		if err != nil {
			return nil, &OpError{Index: i, Err: err}
		}
		ops[i] = InsertOrReplace(e)
	}
	return s.Apply(ctx, table, ops...)
}
