package postgres

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/layout"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// batch is one call of Apply.
type batch struct {
	store   *Store
	ops     []store.Op
	folded  []byte  // name of the table
	p       []byte  // of all entities
	rows    []entry // by op
	short   []int   // indexes of the rows in tr_entities, in the order of r
	long    []int   // indexes of the rows in tr_long, in the order of h
	merges  bool    // a result depends on the stored entity
	limited bool    // an op fails whatever is stored
	waited  bool    // a statement got a Timestamp that would not increase, since it waited for a row
	results []store.Result
}

// entry is the row of one op.
type entry struct {
	layout.Key
	want  int64  // the Timestamp that the stored entity must have: see wantAny and wantNone
	value []byte // the column v to write, nil for a deletion; for a merge judge sets it
	limit error  // the limit that the result exceeds; for a merge judge sets it

	found bool // whether the entity was stored when it was read last
	ts    int64
	old   []byte // its column v, if the batch merges
}

// The values of entry.want that are not a Timestamp.
const (
	wantAny  = 0
	wantNone = -1 // an ETag that no entity can have
)

// newBatch returns the batch of ops, which CheckBatch has accepted.
func (s *Store) newBatch(table string, ops []store.Op) *batch {
	b := &batch{store: s, ops: ops, folded: []byte(edm.FoldTableName(table)), rows: make([]entry, len(ops)), results: make([]store.Result, len(ops))}
	for i := range ops {
		op, e := &ops[i], &b.rows[i]
		e.Key = layout.KeyOf(op.Entity.Key)
		e.want = wantAny
		switch op.Kind {
		case store.OpMerge, store.OpReplace, store.OpDelete:
			e.want = wantOf(op.IfMatch)
		}
		switch op.Kind {
		case store.OpInsert, store.OpInsertOrReplace, store.OpReplace:
			b.set(i, op.Entity.Properties)
		case store.OpInsertOrMerge, store.OpMerge:
			b.merges = true
		}
		b.limited = b.limited || e.limit != nil || e.want == wantNone
		if e.H != nil {
			b.long = append(b.long, i)
		} else {
			b.short = append(b.short, i)
		}
	}
	b.p = b.rows[0].P
	slices.SortFunc(b.short, func(i, j int) int { return bytes.Compare(b.rows[i].R, b.rows[j].R) })
	slices.SortFunc(b.long, func(i, j int) int { return bytes.Compare(b.rows[i].H, b.rows[j].H) })
	return b
}

// set sets what op i writes.
func (b *batch) set(i int, props edm.Properties) {
	op, e := &b.ops[i], &b.rows[i]
	if e.limit = edm.CheckTotals(op.Entity.Key, props); e.limit == nil {
		e.value = b.store.db.shapes.AppendValue(nil, props, op.Kind != store.OpInsert)
	}
}

// wantOf returns the Timestamp whose ETag is etag.
func wantOf(etag edm.ETag) int64 {
	if etag == store.Any {
		return wantAny
	}
	text, ok := strings.CutPrefix(string(etag), `W/"datetime'`)
	if !ok {
		return wantNone
	}
	if text, ok = strings.CutSuffix(text, `'"`); !ok {
		return wantNone
	}
	t, err := edm.ParseTicks(strings.ReplaceAll(text, "%3A", ":"))
	if err != nil || t <= 0 || t.ETag() != etag {
		return wantNone
	}
	return int64(t)
}

// all reports whether all ops have the kind, are in tr_entities, and are within their limits.
func (b *batch) all(kind store.OpKind) bool {
	if len(b.long) > 0 || b.limited {
		return false
	}
	for i := range b.ops {
		if b.ops[i].Kind != kind {
			return false
		}
	}
	return true
}

// forget forgets the stored entities.
func (b *batch) forget() {
	for i := range b.rows {
		e := &b.rows[i]
		e.found, e.ts, e.old = false, 0, nil
	}
}

// found records a stored entity, whose key is the r of tr_entities or the h of tr_long. The
// columns are valid until found returns.
func (b *batch) found(long bool, key, ts, v []byte) error {
	i := b.index(long, key)
	if i < 0 {
		return wire.ErrLostRace // no answer to the question
	}
	n, err := wire.Int8Of(ts)
	if err != nil {
		return err
	}
	e := &b.rows[i]
	e.found, e.ts = true, n
	if v != nil {
		e.old = bytes.Clone(v)
	}
	return nil
}

// index returns the index of the op with the r, or the h, key, and -1 if there is none.
func (b *batch) index(long bool, key []byte) int {
	list := b.short
	if long {
		list = b.long
	}
	at, ok := slices.BinarySearchFunc(list, key, func(i int, key []byte) int { return bytes.Compare(b.keyOf(i, long), key) })
	if !ok {
		return -1
	}
	return list[at]
}

// keyOf returns the r, or the h, of op i.
func (b *batch) keyOf(i int, long bool) []byte {
	if long {
		return b.rows[i].H
	}
	return b.rows[i].R
}

// keys returns the array parameter of the keys of list.
func (b *batch) keys(list []int, long bool) []byte {
	return wire.ByteaArray(len(list), func(i int) []byte { return b.keyOf(list[i], long) })
}

// values returns the array parameter of the values of list.
func (b *batch) values(list []int) []byte {
	return wire.ByteaArray(len(list), func(i int) []byte { return b.rows[list[i]].value })
}

// judge checks the ops against the stored entities, op by op, and sets the values of merges. It
// returns the *store.OpError of the first op that fails. table is false if there is no table.
func (b *batch) judge(table bool) error {
	if !table {
		return &store.OpError{Err: store.ErrTableNotFound}
	}
	for i := range b.ops {
		if err := b.judgeOp(i); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) judgeOp(i int) error {
	op, e := &b.ops[i], &b.rows[i]
	failed := func(err error) error { return &store.OpError{Index: i, Executed: true, Err: err} }
	switch op.Kind {
	case store.OpInsert:
		if e.found {
			return failed(store.ErrEntityExists)
		}
	case store.OpMerge, store.OpReplace, store.OpDelete:
		if !e.found {
			return failed(store.ErrEntityNotFound)
		}
		if e.want != wantAny && e.want != e.ts {
			return failed(store.ErrPrecondition)
		}
	case store.OpInsertOrMerge, store.OpInsertOrReplace:
	}
	if op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge {
		if err := b.merge(i); err != nil {
			return err
		}
	}
	if e.limit != nil {
		return failed(e.limit)
	}
	return nil
}

// merge sets the result of merge i.
func (b *batch) merge(i int) error {
	op, e := &b.ops[i], &b.rows[i]
	var empty edm.Entity
	old := empty.View()
	if e.found {
		row, name := new(codec.Row), entitiesTable
		if e.H != nil {
			name = longTable
		}
		if err := b.store.db.shapes.Decode(row, name, layout.UserKey(nil, e.P, e.R), e.ts, e.old); err != nil {
			return err
		}
		old = row
	}
	b.set(i, store.MergeProperties(nil, old, op.Entity.Properties))
	return nil
}

// result records the Timestamp of op i, a bigint.
func (b *batch) result(i int, ts []byte) error {
	n, err := wire.Int8Of(ts)
	t := edm.Ticks(n)
	b.results[i] = store.Result{Timestamp: t, ETag: t.ETag()}
	return err
}
