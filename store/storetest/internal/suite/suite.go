// Package suite is what tests of a Store are written with: a store to open, the
// calls that must succeed, and the comparisons. Its methods fail the test.
package suite

import (
	"context"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Backend is how Run gets at the stores of one backend. A function that is nil
// skips the tests that need it, which say so.
type Backend struct {
	// Open returns an empty store of its own. The suite closes the store; what
	// else there is to release, Open leaves to tb.Cleanup.
	Open func(tb testing.TB) store.Store
	// Reopen closes s and returns a store with the same data.
	Reopen func(tb testing.TB, s store.Store) store.Store
	// PowerCut ends s as a loss of power does and returns a store with what is
	// left: all that was synced, and nothing promised of the rest. No call of s
	// is running; the calls that ran may have failed.
	PowerCut func(tb testing.TB, s store.Store) store.Store
	// HoldSync holds up every sync of s that begins after it returns.
	HoldSync func(tb testing.TB, s store.Store) Hold
}

// Hold is a hand on the syncs of a store.
type Hold struct {
	// Held is closed once a sync is held up.
	Held <-chan struct{}
	// Release lets the held syncs end, and it is called once: without an error
	// they succeed and so do later ones; with one they fail with it.
	Release func(fail error)
}

// Part is one part of the contract. Run skips where the backend lacks what the
// part needs.
type Part struct {
	Name string
	Run  func(t *T)
}

// T is a test of one store or several of one backend.
type T struct {
	testing.TB
	Backend Backend
	Ctx     context.Context
}

// New returns a T that fails tb.
func New(tb testing.TB, b Backend) *T { return &T{tb, b, context.Background()} }

// People is the table that most parts use.
const People = "People"

// Open returns an empty store.
func (t *T) Open() store.Store {
	t.Helper()
	return t.Closing(t.Backend.Open(t))
}

// OpenPeople returns a store with the empty table People.
func (t *T) OpenPeople() store.Store {
	t.Helper()
	s := t.Open()
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, People))
	return s
}

// Closing closes s when the test ends, and returns it.
func (t *T) Closing(s store.Store) store.Store {
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !t.Failed() {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// Reopen closes s and returns a store with the same data.
func (t *T) Reopen(s store.Store) store.Store {
	t.Helper()
	return t.Closing(t.Backend.Reopen(t, s))
}

// NeedReopen skips the test where the backend has no Reopen.
func (t *T) NeedReopen() {
	if t.Backend.Reopen == nil {
		t.Skip("this backend has no Reopen")
	}
}

// Apply carries out ops on People.
func (t *T) Apply(s store.Store, ops ...store.Op) []store.Result {
	t.Helper()
	results, err := s.Apply(t.Ctx, People, ops...)
	t.NoErr("Apply", err)
	if len(results) != len(ops) {
		t.Fatalf("Apply of %d ops: %d results", len(ops), len(results))
	}
	return results
}

// Insert adds e to People and returns it as it must be found.
func (t *T) Insert(s store.Store, e edm.Entity) edm.Entity {
	t.Helper()
	e.Timestamp = t.Apply(s, store.Insert(e))[0].Timestamp
	return e
}

// Fill adds entities to People, in batches, and returns them in the order of
// their keys as they must be found.
func (t *T) Fill(s store.Store, list []edm.Entity) []edm.Entity {
	t.Helper()
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b edm.Entity) int { return a.Key.Compare(b.Key) })
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && to-from < edm.MaxBatchOps && list[to].Key.Partition == list[from].Key.Partition {
			to++
		}
		var ops []store.Op
		for _, e := range list[from:to] {
			ops = append(ops, store.Insert(e))
		}
		for i, r := range t.Apply(s, ops...) {
			list[from+i].Timestamp = r.Timestamp
		}
		from = to
	}
	return list
}

// WantEntity fails unless Get, View and Query of People show want.
func (t *T) WantEntity(what string, s store.Store, want edm.Entity) {
	t.Helper()
	got, err := s.Get(t.Ctx, People, want.Key)
	if err != nil || !SameEntity(got, want) {
		t.Errorf("%s: Get: got %s, %v, want %s", what, Show(got), err, Show(want))
	}
	got = edm.Entity{}
	err = s.View(t.Ctx, People, want.Key, func(r edm.Row) error {
		t.WellFormed(r)
		got = edm.EntityOf(r)
		return nil
	})
	if err != nil || !SameEntity(got, want) {
		t.Errorf("%s: View: got %s, %v, want %s", what, Show(got), err, Show(want))
	}
	page := t.Page(s, store.Query{From: &want.Key, Limit: 1})
	if len(page.Rows) != 1 || !SameEntity(page.Rows[0], want) {
		t.Errorf("%s: Query: got %s, want %s", what, Show(page.Rows), Show(want))
	}
}

// WantGone fails unless People has no entity of key.
func (t *T) WantGone(what string, s store.Store, key edm.Key) {
	t.Helper()
	_, err := s.Get(t.Ctx, People, key)
	t.WantErr(what+": Get", err, store.ErrEntityNotFound)
	err = s.View(t.Ctx, People, key, func(edm.Row) error {
		t.Errorf("%s: View shows an entity that is not there", what)
		return nil
	})
	t.WantErr(what+": View", err, store.ErrEntityNotFound)
}

// WellFormed fails unless the methods of a row agree with each other.
func (t *T) WellFormed(r edm.Row) {
	t.Helper()
	key := r.Key()
	if p := r.AppendPartition([]byte("+")); string(p) != "+"+key.Partition {
		t.Errorf("AppendPartition gives %q for the key %q", p, key)
	}
	if p := r.AppendRow([]byte("+")); string(p) != "+"+key.Row {
		t.Errorf("AppendRow gives %q for the key %q", p, key)
	}
	for i := range r.Len() {
		name, v := r.At(i)
		if w, ok := r.Lookup(name); !ok || !v.Equal(w) {
			t.Errorf("At(%d) is %q = %s, Lookup gives %s, %v", i, name, Show(v), Show(w), ok)
		}
	}
	if v, ok := r.Lookup("NoSuchName"); ok || !v.IsNull() {
		t.Errorf("Lookup of a name that is not there gives %s, %v", Show(v), ok)
	}
}
