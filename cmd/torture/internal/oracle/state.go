package oracle

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Effect is one change that a commit made.
type Effect struct {
	Kind   EffectKind
	Table  string // folded; empty for the account's metadata
	Info   store.TableInfo
	Entity edm.Entity // Put: the whole entity; Remove: its key
	Meta   []byte
}

// EffectKind is the kind of an Effect.
type EffectKind uint8

// The kinds of Effect.
const (
	Put EffectKind = iota + 1
	Remove
	Create
	Drop
	SetMeta
)

// State is the contents of a database. It is not safe for concurrent use.
type State struct {
	tables  map[string]*Table
	account []byte
	sum     uint64
}

// Table is a table of a State.
type Table struct {
	Info store.TableInfo
	Meta []byte
	Rows map[edm.Key]edm.Entity
}

// NewState returns the state of a new database.
func NewState() *State { return &State{tables: map[string]*Table{}} }

// Sum returns the sum of s.
func (s *State) Sum() uint64 { return s.sum }

// Table returns the table with a folded name, or nil.
func (s *State) Table(folded string) *Table { return s.tables[folded] }

// Tables returns the folded names of all tables in order.
func (s *State) Tables() []string { return slices.Sorted(maps.Keys(s.tables)) }

// Keys returns the keys of a table in order.
func (t *Table) Keys() []edm.Key {
	return slices.SortedFunc(maps.Keys(t.Rows), edm.Key.Compare)
}

// Apply makes a change, which must be valid.
func (s *State) Apply(e Effect) {
	t := s.tables[e.Table]
	switch e.Kind {
	case Create:
		s.tables[e.Table] = &Table{Info: e.Info, Rows: map[edm.Key]edm.Entity{}}
		s.sum += sumTable(e.Info)
	case Drop:
		for _, row := range t.Rows {
			s.sum -= sumEntity(e.Table, &row)
		}
		s.sum -= sumTable(t.Info) + sumMeta(e.Table, t.Meta)
		delete(s.tables, e.Table)
	case SetMeta:
		at := &s.account
		if e.Table != "" {
			at = &t.Meta
		}
		s.sum += sumMeta(e.Table, e.Meta) - sumMeta(e.Table, *at)
		*at = e.Meta
	case Put, Remove:
		if old, ok := t.Rows[e.Entity.Key]; ok {
			s.sum -= sumEntity(e.Table, &old)
			delete(t.Rows, e.Entity.Key)
		}
		if e.Kind == Put {
			s.sum += sumEntity(e.Table, &e.Entity)
			t.Rows[e.Entity.Key] = e.Entity
		}
	}
}

// Resolve returns the properties of the entity in t after op, with put false for a deletion,
// or the error that the contract of package store requires. Every op but an insert sorts the
// properties by the UTF-16 code units of their names.
func (t *Table) Resolve(op *store.Op) (props edm.Properties, put bool, err error) {
	old, ok := t.Rows[op.Entity.Key]
	switch op.Kind {
	case store.OpInsert:
		if ok {
			return nil, false, store.ErrEntityExists
		}
	case store.OpMerge, store.OpReplace, store.OpDelete:
		if !ok {
			return nil, false, store.ErrEntityNotFound
		}
		if op.IfMatch != store.Any && op.IfMatch != old.Timestamp.ETag() {
			return nil, false, store.ErrPrecondition
		}
	case store.OpInsertOrMerge, store.OpInsertOrReplace:
	}
	if op.Kind == store.OpDelete {
		return nil, false, nil
	}
	if op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge {
		props = slices.Clone(old.Properties)
	}
	for _, p := range op.Entity.Properties {
		if i := slices.IndexFunc(props, func(q edm.Property) bool { return q.Name == p.Name }); i >= 0 {
			props[i] = p
		} else {
			props = append(props, p)
		}
	}
	if op.Kind != store.OpInsert {
		props = slices.Clone(props)
		slices.SortFunc(props, func(a, b edm.Property) int { return edm.Compare(a.Name, b.Name) })
	}
	return props, true, nil
}

// Diff describes the differences between got and s in a few lines.
func (s *State) Diff(got *State) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range union(s.tables, got.tables, strings.Compare) {
		a, b := s.tables[name], got.tables[name]
		switch {
		case a == nil:
			add("table %s is unexpected, created at %d", b.Info.Name, b.Info.Created)
		case b == nil:
			add("table %s is missing, created at %d", a.Info.Name, a.Info.Created)
		default:
			if a.Info != b.Info {
				add("table %v, want %v", b.Info, a.Info)
			}
			if !bytes.Equal(a.Meta, b.Meta) {
				add("metadata of %s: %d bytes, want %d", name, len(b.Meta), len(a.Meta))
			}
			lines = append(lines, diffRows(name, a.Rows, b.Rows)...)
		}
	}
	if !bytes.Equal(s.account, got.account) {
		add("metadata of the account: %d bytes, want %d", len(got.account), len(s.account))
	}
	const most = 8
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "; ")
}

func diffRows(table string, want, got map[edm.Key]edm.Entity) (lines []string) {
	for _, k := range union(want, got, edm.Key.Compare) {
		a, inWant := want[k]
		b, inGot := got[k]
		switch {
		case !inGot:
			lines = append(lines, fmt.Sprintf("%s %.60q of %d is missing", table, k, a.Timestamp))
		case !inWant:
			lines = append(lines, fmt.Sprintf("%s %.60q of %d is unexpected", table, k, b.Timestamp))
		case sumEntity(table, &a) != sumEntity(table, &b):
			lines = append(lines, fmt.Sprintf("%s %.60q of %d with %d properties, want that of %d with %d",
				table, k, b.Timestamp, len(b.Properties), a.Timestamp, len(a.Properties)))
		}
	}
	return lines
}

func union[K comparable, V any](a, b map[K]V, compare func(K, K) int) []K {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, compare)
	return slices.CompactFunc(keys, func(x, y K) bool { return compare(x, y) == 0 })
}

// sumWithout returns the sum of s without the tables in skip.
func (s *State) sumWithout(skip map[string]bool) uint64 {
	sum := s.sum
	for name, t := range s.tables {
		if !skip[name] {
			continue
		}
		sum -= sumTable(t.Info) + sumMeta(name, t.Meta)
		for _, row := range t.Rows {
			sum -= sumEntity(name, &row)
		}
	}
	return sum
}

// MaxTick returns the largest Timestamp in s.
func (s *State) MaxTick() edm.Ticks {
	var most edm.Ticks
	for _, t := range s.tables {
		for _, row := range t.Rows {
			most = max(most, row.Timestamp)
		}
	}
	return most
}

// CompareInfo orders tables by their folded names.
func CompareInfo(a, b store.TableInfo) int {
	return cmp.Compare(edm.FoldTableName(a.Name), edm.FoldTableName(b.Name))
}
