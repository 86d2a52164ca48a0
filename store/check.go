package store

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// CheckBatch returns an *OpError for the first rule that a batch breaks. Every
// backend checks in this order:
//
//  1. The name of the table. Index is 0.
//  2. Each op, before the next op: its kind; its key, Partition before Row; the
//     names of its properties, then repeated names, then their values; whether the
//     Partition is that of op 0; whether an earlier op has the same key. Index is
//     the index of the op, for a repeated key of the second one.
//  3. The number of ops. Index is edm.MaxBatchOps-1 for too many, 0 for none.
//  4. The total size of the ops as given, by edm.EntitySize, without the properties
//     of an OpDelete: at most edm.MaxBatchBytes. Index is the index of the op that
//     exceeds the limit.
//
// The other checks need stored data, so the backend makes them: whether the table
// exists (ErrTableNotFound, Index 0); then for each op, with Executed set, whether
// the entity exists (for OpInsert: does not exist), whether it has the ETag, and
// edm.CheckTotals of the resulting entity. So an entity that has too many
// properties, or is too large, is reported after a missing table.
//
// CheckBatch ignores the properties of an OpDelete. It allocates nothing for a valid
// batch. Err is ErrInvalid for an unknown kind, and an *edm.Error otherwise.
//
// The argument checked is nil unless the backend caches checked property names.
// CheckBatch calls it with the properties of ops[i] at most once for each op, in the
// order of ops. If it returns true, CheckBatch does not check the properties: their names
// must be legal and distinct, those of nulls included, their values must pass
// edm.CheckValues, and bytes must be at least the length of all names, Strings and
// Binaries.
func CheckBatch(table string, ops []Op, checked func(i int, props edm.Properties) (bytes int, ok bool)) error {
	c := checker{ops: ops, checked: checked}
	return c.check(table)
}

// checker checks one batch.
type checker struct {
	ops     []Op
	checked func(i int, props edm.Properties) (bytes int, ok bool)
	// bound is an upper bound for the size of the ops that were checked, without
	// counting code units: a text has at most as many code units as bytes.
	bound int64
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
		// Ascending keys are distinct, in whatever order. Most batches have
		// ascending keys.
		if rising = rising && ops[i-1].Entity.Key.Row < key.Row; !rising {
			return c.checkUnordered(i)
		}
	}
	return c.checkTotals()
}

// checkUnordered continues check at ops[from]: the Rows of ops[:from] are ascending,
// and that of ops[from], which passed every other check, is not greater.
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
	return c.checkTotals()
}

var errKind = errors.New("unknown kind of operation")

// checkOp checks op i by itself.
func (c *checker) checkOp(i int) error {
	op := &c.ops[i]
	if !op.Kind.valid() {
		return fmt.Errorf("%w %d: %w", errKind, op.Kind, ErrInvalid)
	}
	key := op.Entity.Key
	c.bound += opBound + 2*int64(len(key.Partition)+len(key.Row))
	if i > 0 && key.Partition == c.ops[0].Entity.Key.Partition {
		key.Partition = "" // it was checked
	}
	if err := edm.CheckKey(key); err != nil {
		return err
	}
	props := op.Entity.Properties
	if op.Kind == OpDelete || len(props) == 0 {
		return nil
	}
	c.bound += int64(len(props)) * propertyBound
	if c.checked != nil {
		if n, ok := c.checked(i, props); ok {
			c.bound += 2 * int64(n)
			return nil
		}
	}
	for j := range props {
		c.bound += 2 * int64(len(props[j].Name)+len(props[j].Value.Bytes()))
	}
	return edm.CheckProperties(props)
}

// Upper bounds for the overhead of edm.EntitySize for a key, and for a property.
const opBound, propertyBound = 8, 32

// checkTotals checks the number and the size of the ops, after checkOp of each.
func (c *checker) checkTotals() error {
	ops := c.ops
	if err := checkBatchCount(len(ops)); err != nil {
		return &OpError{Index: max(0, min(len(ops), edm.MaxBatchOps)-1), Err: err}
	}
	if c.bound <= edm.MaxBatchBytes {
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

var errNegative = errors.New("a negative number of entities or bytes")

// CheckQuery returns an *edm.Error if the From of q is not valid UTF-8, which has no
// position in the order of keys, and ErrInvalid if a limit of q is negative.
func CheckQuery(q Query) error {
	for _, limit := range [...]struct {
		name string
		n    int
	}{{"Limit", q.Limit}, {"Budget", q.Budget}, {"BudgetBytes", q.BudgetBytes}} {
		if limit.n < 0 {
			return fmt.Errorf("%s of a query: %w: %d: %w", limit.name, errNegative, limit.n, ErrInvalid)
		}
	}
	if q.From == nil {
		return nil
	}
	for _, part := range [...]struct{ name, text string }{
		{edm.PartitionKeyName, q.From.Partition}, {edm.RowKeyName, q.From.Row},
	} {
		if !utf8.ValidString(part.text) {
			return &edm.Error{Rule: edm.RuleUTF8, Name: part.name, Got: "the start of a query is not UTF-8"}
		}
	}
	return nil
}

// rowSet is a set of Rows of ops. For up to edm.MaxBatchOps ops it is a hash table on
// the stack; if all Rows collide, add compares all pairs. For more ops, which are
// an error in the end, it is a map.
type rowSet struct {
	ops   []Op
	slots [256]uint8 // index in ops plus one, or 0
	many  map[string]struct{}
}

// add adds the Row of ops[i] and reports whether it was not in the set.
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
