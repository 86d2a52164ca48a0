package store

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// CheckBatch returns an *OpError for the first rule that a batch breaks, in the order
// that every backend follows:
//
//  1. The table's name: Index 0.
//  2. Then op by op, so that every failure of an op comes before any of the
//     next: its kind; its key, Partition before Row; the names of its
//     properties, each legal and given once; their values; then whether
//     Partition is that of op 0, and whether no earlier op has the same key.
//     Index is that op: the first that differs, the second occurrence.
//  3. The number of ops. Index is MaxBatchOps-1 for too many, 0 for none.
//  4. The bytes of all ops as given, each counted by edm.EntitySize, an OpDelete
//     without properties: at most edm.MaxBatchBytes. Index is the op that exceeds
//     the limit.
//
// What follows needs stored state and is the backend's: whether the table exists
// (ErrTableNotFound, Index 0); then op by op, with Executed set, whether the
// entity exists (or, for OpInsert, does not), whether it has the ETag, and
// edm.CheckTotals of the entity that the op would leave behind. So an entity of too many
// properties, or too large, is found only there: after a missing table, and with
// Executed set.
//
// The properties of an OpDelete are not looked at. CheckBatch allocates nothing for a
// batch that is in order. An unknown kind is ErrInvalid without an *edm.Error;
// all else is an *edm.Error.
func CheckBatch(table string, ops []Op) error { return CheckBatchFunc(table, ops, nil) }

// CheckBatchFunc is CheckBatch for a backend that remembers which property names
// it has checked. It calls known with the properties of ops[i] at most once for
// each op, in the order of ops. If known returns true, all names in props, those
// of nulls included, are legal and distinct, and are not checked again.
func CheckBatchFunc(table string, ops []Op, known func(i int, props edm.Properties) bool) error {
	c := checker{ops: ops, known: known}
	return c.check(table)
}

// checker is a batch while it is checked.
type checker struct {
	ops   []Op
	known func(i int, props edm.Properties) bool
}

func (c *checker) check(table string) error {
	ops := c.ops
	if err := edm.CheckTableName(table); err != nil {
		return &OpError{Err: err}
	}
	rising := true
	for i := range ops {
		if err := c.checkOp(i); err != nil {
			return &OpError{Index: i, Err: err}
		}
		if i == 0 {
			continue
		}
		key := ops[i].Entity.Key
		if err := checkBatchPartition(ops[0].Entity.Key, key); err != nil {
			return &OpError{Index: i, Err: err}
		}
		// Keys that rise in any one order are distinct, and most callers
		// give them so.
		if rising = rising && ops[i-1].Entity.Key.Row < key.Row; !rising {
			return c.checkUnordered(i)
		}
	}
	return checkTotals(ops)
}

// checkUnordered goes on where check stopped: the Rows of ops[:from] rise, and
// that of ops[from], which passed every other check, does not.
func (c *checker) checkUnordered(from int) error {
	ops := c.ops
	rows := rowSet{ops: ops}
	for i := range ops {
		if i > from {
			if err := c.checkOp(i); err != nil {
				return &OpError{Index: i, Err: err}
			}
			if err := checkBatchPartition(ops[0].Entity.Key, ops[i].Entity.Key); err != nil {
				return &OpError{Index: i, Err: err}
			}
		}
		if !rows.add(i) {
			return &OpError{Index: i, Err: batchDuplicate(ops[i].Entity.Key)}
		}
	}
	return checkTotals(ops)
}

var errKind = errors.New("unknown kind of operation")

// checkOp checks op i by itself.
func (c *checker) checkOp(i int) error {
	op := &c.ops[i]
	if !op.Kind.valid() {
		return fmt.Errorf("%w %d: %w", errKind, op.Kind, ErrInvalid)
	}
	if err := edm.CheckKey(op.Entity.Key); err != nil {
		return err
	}
	props := op.Entity.Properties
	if op.Kind == OpDelete || len(props) == 0 {
		return nil
	}
	if c.known != nil && c.known(i, props) {
		return edm.CheckValues(props)
	}
	return edm.CheckProperties(props)
}

// checkTotals looks at what a batch is as a whole.
func checkTotals(ops []Op) error {
	if err := checkBatchCount(len(ops)); err != nil {
		return &OpError{Index: max(0, min(len(ops), edm.MaxBatchOps)-1), Err: err}
	}
	if bytesBound(ops) <= edm.MaxBatchBytes {
		return nil
	}
	var sum int64
	for i := range ops {
		e := &ops[i].Entity
		if ops[i].Kind == OpDelete {
			sum += int64(edm.EntitySize(e.Key, nil))
		} else {
			sum += int64(edm.EntitySize(e.Key, e.Properties))
		}
		if err := checkBatchBytes(sum); err != nil {
			return &OpError{Index: i, Err: err}
		}
	}
	return nil
}

// bytesBound returns a number that is not below the bytes of ops, without
// counting code units: a text never has more of them than bytes.
func bytesBound(ops []Op) int64 {
	// More than what the formula adds to a key, and to a name and a value.
	const perOp, perProperty = 8, 32
	var n int64
	for i := range ops {
		e := &ops[i].Entity
		n += perOp + 2*int64(len(e.Key.Partition)+len(e.Key.Row))
		for j := range e.Properties {
			p := &e.Properties[j]
			n += perProperty + 2*int64(len(p.Name)+len(p.Value.Bytes()))
		}
	}
	return n
}

// CheckQuery returns an *edm.Error unless q has a From that has a place in the
// order of keys, or none.
func CheckQuery(q Query) error {
	if q.From == nil {
		return nil
	}
	for _, part := range [...]struct{ name, text string }{
		{edm.PartitionKeyName, q.From.Partition}, {edm.RowKeyName, q.From.Row},
	} {
		if !utf8.ValidString(part.text) {
			return &edm.Error{Rule: edm.RuleUTF8, Name: part.name, Got: "a place to start at that is not UTF-8"}
		}
	}
	return nil
}

// rowSet is the set of the Rows of some of ops. Up to MaxBatchOps of them stand
// in a hash table on the stack, where keys that collide on purpose cost no more
// than comparing each with each; a longer batch, which will be refused, takes a
// map.
type rowSet struct {
	ops   []Op
	slots [256]uint8 // an index in ops plus one; 0 is free
	many  map[string]struct{}
}

// add adds the Row of ops[i], and reports whether it was not there.
func (s *rowSet) add(i int) bool {
	row := s.ops[i].Entity.Key.Row
	if len(s.ops) > edm.MaxBatchOps {
		if s.many == nil {
			s.many = make(map[string]struct{}, len(s.ops))
		}
		n := len(s.many)
		s.many[row] = struct{}{}
		return len(s.many) > n
	}
	for at := hashRow(row); ; at++ {
		other := s.slots[at]
		if other == 0 {
			s.slots[at] = uint8(i + 1)
			return true
		}
		if s.ops[other-1].Entity.Key.Row == row {
			return false
		}
	}
}

// hashRow is FNV-1a, folded to a slot.
func hashRow(s string) uint8 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}
