package store

import (
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// OpKind is the kind of an Op. OpInsert stores the properties in the order in which
// they are given. Every other kind but OpDelete stores all properties of the resulting
// entity in the order of their names by UTF-16 code units, so that "Birthday" comes
// before "age".
type OpKind uint8

// The kinds of Op.
const (
	OpInsert          OpKind = iota + 1 // the entity must not exist
	OpInsertOrMerge                     // set the given properties, keep the others
	OpInsertOrReplace                   // set the given properties, remove the others
	OpMerge                             // like OpInsertOrMerge, but the entity must exist
	OpReplace                           // like OpInsertOrReplace, but the entity must exist
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

// Any as the IfMatch of an Op matches every existing entity.
const Any edm.ETag = "*"

// Op is an operation on one entity. The store neither retains nor changes it.
type Op struct {
	Kind   OpKind
	Entity edm.Entity // for OpDelete only the Key
	// IfMatch is for OpMerge, OpReplace and OpDelete: the ETag that the entity must
	// have, or Any. It comes from Result.ETag, or from the ETag method of the
	// Timestamp of an entity that was read. An empty one matches no entity.
	IfMatch edm.ETag
}

// Insert returns an Op that adds e. It fails with ErrEntityExists if there is an
// entity with this key.
func Insert(e edm.Entity) Op { return Op{Kind: OpInsert, Entity: e} }

// InsertOrMerge returns an Op that adds e, or sets the properties of e in the existing
// entity.
func InsertOrMerge(e edm.Entity) Op { return Op{Kind: OpInsertOrMerge, Entity: e} }

// InsertOrReplace returns an Op that adds e, or replaces the existing entity by e.
func InsertOrReplace(e edm.Entity) Op { return Op{Kind: OpInsertOrReplace, Entity: e} }

// Merge returns an Op that sets the properties of e in the existing entity. It fails
// with ErrEntityNotFound, or with ErrPrecondition if the entity has another ETag
// than ifMatch, which can be Any; see Op.IfMatch.
func Merge(e edm.Entity, ifMatch edm.ETag) Op {
	return Op{Kind: OpMerge, Entity: e, IfMatch: ifMatch}
}

// Replace returns an Op that replaces the existing entity by e. It fails like Merge.
func Replace(e edm.Entity, ifMatch edm.ETag) Op {
	return Op{Kind: OpReplace, Entity: e, IfMatch: ifMatch}
}

// Delete returns an Op that removes the existing entity. It fails like Merge.
func Delete(key edm.Key, ifMatch edm.ETag) Op {
	return Op{Kind: OpDelete, Entity: edm.Entity{Key: key}, IfMatch: ifMatch}
}

// Result is the new version of an entity after an Op. It is zero for a deletion.
type Result struct {
	Timestamp edm.Ticks
	ETag      edm.ETag
}
