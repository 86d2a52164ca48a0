package fuzz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
)

// FuzzStore runs operations on the engine and on the map of package storetest. Both return
// the same results, with flushes, compactions, reopens and snapshots of the engine in
// between, and contain the same at the end.
func FuzzStore(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x05a\x02\x02b\x0b\x00\x01\x09\x0c\x0d\x00\x01\x0e"))
	f.Add([]byte("\x00\x09\x0b\x01\x09\x0b\x05\x09\x0c\x0d\x0e\x00\x09\x0b\x0c"))
	f.Add([]byte("\x08\x04\x01\x02\x03\x04\x0b\x08\x03\x02\x05\x06\x0d\x07\x01\x0c\x0a\x0a\x00\x01\x0b\x0e"))
	f.Add(bytes.Repeat([]byte("\x01\x11\x02\x12\x0b\x03\x13\x05\x12\x0f\x0a"), 6))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 1024 {
			t.Skip("too long")
		}
		w := newWorld(t)
		defer w.close()
		for w.program = program; len(w.program) > 0; {
			w.step()
		}
		w.compare("end")
		w.reopen()
		w.compare("opened again")
	})
}

// world is an engine and its model.
type world struct {
	t       *testing.T
	ctx     context.Context
	disk    *vfs.Mem
	db      *engine.DB
	model   store.Store
	program []byte
	n       int // operations done
	// old has earlier ETags of keys, of the engine and of the model.
	old map[edm.Key][2]edm.ETag
	// pinned is a snapshot with the contents of the model at that time.
	pinned *engine.Snapshot
	frozen []edm.Entity
}

const worldTable = "World"

func newWorld(t *testing.T) *world {
	w := &world{t: t, ctx: t.Context(), disk: vfs.NewMem(), model: storetest.NewMap(nil), old: map[edm.Key][2]edm.ETag{}}
	w.open()
	w.same("create", w.db.CreateTable(w.ctx, worldTable), w.model.CreateTable(w.ctx, worldTable))
	return w
}

func (w *world) open() {
	var err error
	if w.db, err = engine.Open("db", options(w.disk)); err != nil {
		w.t.Fatalf("after %d operations: open: %v", w.n, err)
	}
}

func (w *world) close() {
	w.unpin()
	if err := w.db.Close(); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

func (w *world) reopen() {
	w.close()
	w.open()
}

func (w *world) byte() byte {
	if len(w.program) == 0 {
		return 0
	}
	b := w.program[0]
	w.program = w.program[1:]
	return b
}

// op returns the next operation for the engine and for the model. Keys are few, so that
// operations meet on the same entities.
func (w *world) op(kind, key byte, partition string) [2]store.Op {
	k := edm.Key{Partition: partition, Row: fmt.Sprint(key >> 3 & 7)}
	w.n++
	props := edm.Properties{{Name: "n", Value: edm.Int64(int64(w.n))}}
	if key&0x40 != 0 {
		props = append(props, everyType(w.n)[w.n%8])
	}
	e := edm.Entity{Key: k, Properties: props}
	match := [2]edm.ETag{store.Any, store.Any}
	if key&0x80 != 0 {
		if tags, ok := w.old[k]; ok {
			match = tags
		}
	}
	var ops [2]store.Op
	for i := range ops {
		ops[i] = [...]store.Op{
			store.InsertOrReplace(e), store.Insert(e), store.InsertOrMerge(e), store.Merge(e, match[i]), store.Replace(e, match[i]), store.Delete(k, match[i]),
		}[kind%6]
	}
	return ops
}

func partitionOf(key byte) string { return []string{"", "a", "a\U0001F600", "b"}[key&3] }

// step carries out one instruction.
func (w *world) step() {
	switch code := w.byte() % 16; code {
	case 0, 1, 2, 3, 4, 5:
		key := w.byte()
		w.apply([][2]store.Op{w.op(code, key, partitionOf(key))})
	case 6, 7, 8:
		n, partition := 1+w.byte()%12, partitionOf(code)
		batch := make([][2]store.Op, 0, n)
		for range n {
			batch = append(batch, w.op(w.byte(), w.byte(), partition))
		}
		w.apply(batch)
	case 9:
		w.compare("scan")
	case 10:
		if w.pinned == nil {
			w.pin()
		} else {
			w.unpin()
		}
	case 11:
		w.must("flush", w.db.Flush(w.ctx))
	case 12:
		w.must("compact", w.db.Compact(w.ctx))
	case 13:
		_, err := w.db.Step(w.ctx)
		w.must("step", err)
	case 14:
		w.reopen()
	case 15:
		w.same("drop", w.db.DeleteTable(w.ctx, worldTable), w.model.DeleteTable(w.ctx, worldTable))
		w.same("create", w.db.CreateTable(w.ctx, worldTable), w.model.CreateTable(w.ctx, worldTable))
	}
}

func (w *world) apply(batch [][2]store.Op) {
	w.t.Helper()
	var ops [2][]store.Op
	for _, b := range batch {
		ops[0], ops[1] = append(ops[0], b[0]), append(ops[1], b[1])
	}
	got, err := w.db.Apply(w.ctx, worldTable, ops[0]...)
	want, wantErr := w.model.Apply(w.ctx, worldTable, ops[1]...)
	w.same("apply", err, wantErr)
	for i := range got {
		w.old[ops[0][i].Entity.Key] = [2]edm.ETag{got[i].ETag, want[i].ETag}
	}
}

// same fails unless two errors are the same refusal of the same operation.
func (w *world) same(what string, got, want error) {
	w.t.Helper()
	var a, b *store.OpError
	if errors.As(got, &a) != errors.As(want, &b) || a != nil && (a.Index != b.Index || a.Executed != b.Executed) {
		w.t.Fatalf("operation %d, %s: got %v, want %v", w.n, what, got, want)
	}
	for _, sentinel := range []error{
		nil, store.ErrTableExists, store.ErrTableNotFound, store.ErrEntityExists, store.ErrEntityNotFound, store.ErrPrecondition, store.ErrInvalid, store.ErrTooLarge,
	} {
		if errors.Is(got, sentinel) != errors.Is(want, sentinel) {
			w.t.Fatalf("operation %d, %s: got %v, want %v", w.n, what, got, want)
		}
	}
}

func (w *world) must(what string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("operation %d, %s: %v", w.n, what, err)
	}
}

// entities reads the table without the Timestamps, in which the stores differ.
func (w *world) entities(s interface {
	Query(context.Context, string, store.Query) store.Cursor
},
) (all []edm.Entity) {
	w.t.Helper()
	for e, err := range store.Entities(s.Query(w.ctx, worldTable, store.Query{})) {
		w.must("scan", err)
		e.Timestamp = 0
		all = append(all, e)
	}
	return all
}

func (w *world) compare(what string) {
	w.t.Helper()
	w.equal(what, w.entities(w.db), w.entities(w.model))
	shown, err := stateOf(w.ctx, w.db)
	w.must(what, err)
	w.must(what, checkReads(w.ctx, w.db, worldTable, shown.Entities[worldTable]))
}

func (w *world) equal(what string, got, want []edm.Entity) {
	w.t.Helper()
	if len(got) != len(want) {
		w.t.Fatalf("operation %d, %s: %d entities, want %d", w.n, what, len(got), len(want))
	}
	for i := range got {
		if !sameEntity(got[i], want[i]) {
			w.t.Fatalf("operation %d, %s: got %v, want %v", w.n, what, got[i], want[i])
		}
	}
}

func (w *world) pin() {
	var err error
	w.pinned, err = w.db.Snapshot()
	w.must("snapshot", err)
	w.frozen = w.entities(w.model)
}

// unpin checks that a snapshot still returns the contents of its time.
func (w *world) unpin() {
	w.t.Helper()
	if w.pinned == nil {
		return
	}
	w.equal("snapshot", w.entities(w.pinned), w.frozen)
	w.must("close of a snapshot", w.pinned.Close())
	w.pinned = nil
}
