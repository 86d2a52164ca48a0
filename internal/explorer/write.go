package explorer

import (
	"errors"
	"net/http"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

// operation is one operation of a request.
type operation struct {
	Op     string  `json:"op"`
	Entity *Entity `json:"entity"`
	ETag   string  `json:"etag"`
}

// operations has the kind and the action of each op.
var operations = map[string]struct {
	kind   store.OpKind
	action sharedkey.Action
}{
	"insert":          {store.OpInsert, sharedkey.Insert},
	"merge":           {store.OpMerge, sharedkey.Update},
	"replace":         {store.OpReplace, sharedkey.Update},
	"insertOrMerge":   {store.OpInsertOrMerge, sharedkey.Upsert},
	"insertOrReplace": {store.OpInsertOrReplace, sharedkey.Upsert},
	"delete":          {store.OpDelete, sharedkey.DeleteEntity},
}

// parse returns the operation for the store, if the session may do it.
func (x *exchange) parse(table string, o *operation) (store.Op, error) {
	known, ok := operations[o.Op]
	if !ok {
		return store.Op{}, badInput("There is no operation of this name.")
	}
	if err := x.allow(known.action, table); err != nil {
		return store.Op{}, err
	}
	if o.Entity == nil {
		return store.Op{}, badInput("The entity is missing.")
	}
	if known.kind == store.OpDelete {
		o.Entity.Properties = nil
	}
	e, err := o.Entity.parse()
	if err != nil {
		return store.Op{}, err
	}
	if err := x.s.Grant.AllowKey(e.Key); err != nil {
		return store.Op{}, err
	}
	op := store.Op{Kind: known.kind, Entity: e}
	if known.action == sharedkey.Update || known.action == sharedkey.DeleteEntity {
		if op.IfMatch = edm.ETag(o.ETag); o.ETag == "" {
			return op, badInput("The ETag of the entity is missing; * matches any.")
		}
	}
	return op, nil
}

func (x *exchange) writeEntity() (any, error) {
	var in struct {
		Account, Table string
		operation
	}
	if err := x.read(&in); err != nil {
		return nil, err
	}
	a, err := x.account(in.Account)
	if err != nil {
		return nil, err
	}
	op, err := x.parse(in.Table, &in.operation)
	if err != nil {
		return nil, err
	}
	results, err := a.Store.Apply(x.r.Context(), in.Table, op)
	if err != nil {
		return nil, x.conflict(a, in.Table, op.Entity.Key, err)
	}
	return writtenOf(results[0]), nil
}

func writtenOf(r store.Result) Written {
	w := Written{ETag: string(r.ETag)}
	if r.Timestamp != 0 {
		w.Timestamp = r.Timestamp.String()
	}
	return w
}

// conflict adds the stored entity to an error for an ETag that differs, if the session may
// read it.
func (x *exchange) conflict(a *Account, table string, key edm.Key, err error) error {
	if !errors.Is(err, store.ErrPrecondition) {
		return err
	}
	_, f := x.h.failureOf(err)
	theirs, readErr := x.readEntity(a, table, key)
	if readErr == nil {
		f.Theirs = theirs
	}
	return &refusal{http.StatusPreconditionFailed, *f}
}

// maxOperations limits a batch.
const maxOperations = 1000

func (x *exchange) writeBatch() (any, error) {
	var in struct {
		Account, Table string
		Ops            []operation
	}
	if err := x.read(&in); err != nil {
		return nil, err
	}
	a, err := x.account(in.Account)
	if err != nil {
		return nil, err
	}
	if len(in.Ops) == 0 || len(in.Ops) > maxOperations {
		return nil, badInput("A batch has 1 to 1,000 operations.")
	}
	b := &batch{x: x, a: a, table: in.Table, results: make([]any, len(in.Ops))}
	for i := range in.Ops {
		op, err := x.parse(in.Table, &in.Ops[i])
		if err != nil {
			b.fail(i, err)
			if e := in.Ops[i].Entity; e != nil {
				op.Entity.Key = edm.Key{Partition: e.PartitionKey, Row: e.RowKey}
			}
		}
		t := b.add(i, op)
		t.refused = t.refused || err != nil
	}
	for _, t := range b.transactions {
		b.apply(t)
	}
	return map[string]any{"results": b.results, "failed": b.failed}, nil
}

// batch executes operations in transactions.
type batch struct {
	x            *exchange
	a            *Account
	table        string
	results      []any
	failed       int
	transactions []*transaction
}

// transaction is a set of operations of one partition.
type transaction struct {
	ops   []store.Op
	index []int // of the operations in the batch
	keys  map[edm.Key]bool
	bytes int64

	refused bool // an operation has failed before the transaction
}

// add adds an operation to the last transaction of its partition, or to a new one, which it
// returns.
func (b *batch) add(i int, op store.Op) *transaction {
	size := int64(edm.EntitySize(op.Entity.Key, op.Entity.Properties))
	limit := b.a.TransactionBytes
	if limit == 0 {
		limit = maxPageBytes
	}
	var t *transaction
	for _, other := range b.transactions {
		if other.ops[0].Entity.Key.Partition == op.Entity.Key.Partition {
			t = other
		}
	}
	if t == nil || len(t.ops) == edm.MaxBatchOps || t.keys[op.Entity.Key] || t.bytes+size > limit {
		t = &transaction{keys: map[edm.Key]bool{}}
		b.transactions = append(b.transactions, t)
	}
	t.ops, t.index, t.bytes = append(t.ops, op), append(t.index, i), t.bytes+size
	t.keys[op.Entity.Key] = true
	return t
}

func (b *batch) fail(i int, err error) {
	_, f := b.x.h.failureOf(err)
	b.results[i] = f
	b.failed++
}

var errNotExecuted = Refuse(http.StatusConflict, "NotExecuted", "Another operation of the same transaction failed, so nothing of it was written.")

// apply executes a transaction and sets the results of its operations.
func (b *batch) apply(t *transaction) {
	if t.refused {
		for _, i := range t.index {
			if b.results[i] == nil {
				b.fail(i, errNotExecuted)
			}
		}
		return
	}
	results, err := b.a.Store.Apply(b.x.r.Context(), b.table, t.ops...)
	if err == nil {
		for n, i := range t.index {
			b.results[i] = writtenOf(results[n])
		}
		return
	}
	at := -1
	if op := (*store.OpError)(nil); errors.As(err, &op) && op.Index < len(t.ops) {
		at = op.Index
	}
	for n, i := range t.index {
		if at < 0 || n == at {
			b.fail(i, err)
		} else {
			b.fail(i, errNotExecuted)
		}
	}
}
