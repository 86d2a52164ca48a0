package bulk

import (
	"context"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/internal/failing"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// rowsOf returns the number of entities of the table Rows, 0 if it is missing.
func rowsOf(t *testing.T, s store.Store) int64 {
	t.Helper()
	n, err := Count(t.Context(), s, "Rows", store.Query{}, func(int64) {})
	if err != nil && !errors.Is(err, store.ErrTableNotFound) {
		t.Fatal(err)
	}
	return n
}

var failures = []struct {
	name  string
	err   error // nil cancels the ctx
	after bool
}{
	{"unavailable", store.ErrUnavailable, false}, {"outcome unknown", store.ErrOutcomeUnknown, true}, {"canceled", nil, false}, {"canceled in a write", nil, true},
}

// TestDeleteFails deletes the rows of a store that fails at each of its calls. The rows that were
// deleted are counted, and another Delete continues.
func TestDeleteFails(t *testing.T) {
	const rows = 120
	for _, c := range failures {
		for at := int64(1); ; at++ {
			s := filled(t, rows/2)
			ctx, cancel := context.WithCancel(t.Context())
			f := &failing.Store{Store: s, At: at, After: c.after, Err: c.err, Wait: cancel}
			n, err := Delete(ctx, f, "Rows", nil, func(int64) {})
			cancel()
			left := rowsOf(t, s)
			if !f.Failed() {
				if err != nil || n.Rows != rows || left != 0 || at < rows {
					t.Errorf("%s without a failure: %+v, error %v, %d left after %d calls", c.name, n, err, left, at-1)
				}
				break
			}
			want := c.err
			if want == nil {
				want = context.Canceled
			}
			if !errors.Is(err, want) || n.Rows > rows-left || !c.after && n.Rows != rows-left {
				t.Errorf("%s at call %d: %+v, error %v, %d left", c.name, at, n, err, left)
			}
			if n, err := Delete(t.Context(), s, "Rows", nil, func(int64) {}); err != nil || n.Rows != left || rowsOf(t, s) != 0 {
				t.Errorf("%s at call %d, and again: %+v, error %v", c.name, at, n, err)
			}
		}
	}
}

// TestCopyFails copies from a store, and to a store, that fails at each of its calls. Another copy
// completes the first.
func TestCopyFails(t *testing.T) {
	const rows = 120
	from := filled(t, rows/2)
	for _, c := range failures {
		for _, source := range []bool{true, false} {
			for at := int64(1); ; at++ {
				to := storetest.NewMap(nil)
				ctx, cancel := context.WithCancel(t.Context())
				f := &failing.Store{Store: to, At: at, After: c.after, Err: c.err, Wait: cancel}
				copier := &Copier{From: from, To: f}
				if source {
					f.Store = from
					copier = &Copier{From: f, To: to}
				}
				n, err := copier.Table(ctx, "Rows")
				cancel()
				if !f.Failed() {
					if err != nil || n.Written != rows || rowsOf(t, to) != rows || at < 4 {
						t.Errorf("%s without a failure: %+v, error %v after %d calls", c.name, n, err, at-1)
					}
					break
				}
				want := c.err
				if want == nil {
					want = context.Canceled
				}
				stored := rowsOf(t, to)
				if !errors.Is(err, want) {
					t.Errorf("%s at call %d: %+v, error %v, %d stored", c.name, at, n, err, stored)
				}
				n, err = (&Copier{From: from, To: to}).Table(t.Context(), "Rows")
				if err != nil || n.Rows != rows || n.Written != rows-stored || rowsOf(t, to) != rows {
					t.Errorf("%s at call %d with %d stored, and again: %+v, error %v", c.name, at, stored, n, err)
				}
			}
		}
	}
}
