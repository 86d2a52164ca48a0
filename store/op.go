package store

import (
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// OpKind is what an Op does.
type OpKind uint8

// The kinds of Op.
const (
	OpInsert          OpKind = iota + 1 // the entity must not exist
	OpInsertOrMerge                     // add or overwrite the given properties, keep others
	OpInsertOrReplace                   // all properties are replaced
	OpMerge                             // as OpInsertOrMerge, but the entity must exist
	OpReplace                           // as OpInsertOrReplace, but the entity must exist
	OpDelete                            // the entity must exist
)

var kindNames = [...]string{
	OpInsert:          "insert",
	OpInsertOrMerge:   "insert or merge",
	OpInsertOrReplace: "insert or replace",
	OpMerge:           "merge",
	OpReplace:         "replace",
	OpDelete:          "delete",
}

// valid reports whether k is one of the kinds.
func (k OpKind) valid() bool { return k >= OpInsert && k <= OpDelete }

// String returns the name of k, such as "insert or merge".
func (k OpKind) String() string {
	if !k.valid() {
		return "kind " + strconv.Itoa(int(k))
	}
	return kindNames[k]
}

// Any as an Op's IfMatch accepts whatever content an existing entity has.
const Any edm.ETag = "*"

// Op is one operation on one entity. For OpDelete only Entity.Key counts;
// IfMatch counts for OpMerge, OpReplace and OpDelete and is the ETag that the
// entity must have, or Any. The store does not keep or change Entity.
type Op struct {
	Kind    OpKind
	Entity  edm.Entity
	IfMatch edm.ETag
}

// Insert adds e, which must not exist.
func Insert(e edm.Entity) Op { return Op{Kind: OpInsert, Entity: e} }

// InsertOrMerge adds e, or sets e's properties in the entity that exists.
func InsertOrMerge(e edm.Entity) Op { return Op{Kind: OpInsertOrMerge, Entity: e} }

// InsertOrReplace adds e, or puts it in the place of the entity that exists.
func InsertOrReplace(e edm.Entity) Op { return Op{Kind: OpInsertOrReplace, Entity: e} }

// Merge sets e's properties in the existing entity.
func Merge(e edm.Entity, ifMatch edm.ETag) Op {
	return Op{Kind: OpMerge, Entity: e, IfMatch: ifMatch}
}

// Replace puts e in the place of the existing entity.
func Replace(e edm.Entity, ifMatch edm.ETag) Op {
	return Op{Kind: OpReplace, Entity: e, IfMatch: ifMatch}
}

// Delete removes an existing entity.
func Delete(key edm.Key, ifMatch edm.ETag) Op {
	return Op{Kind: OpDelete, Entity: edm.Entity{Key: key}, IfMatch: ifMatch}
}

// Result is what became of one Op. A deletion has neither.
type Result struct {
	Timestamp edm.Ticks
	ETag      edm.ETag
}
