package sharedkey

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// Action is something that a request wants to do.
type Action uint8

// The actions. Query is a query or the read of one entity, ListTables also the
// look at one table, Update a merge or replace of what is there (with If-Match),
// Upsert one without.
const (
	ReadProperties Action = iota
	WriteProperties
	ReadStats
	ListTables
	CreateTable
	DeleteTable
	ACL
	Query
	Insert
	Update
	Upsert
	DeleteEntity
	actions
)

// needs is what an action asks of a shared access signature.
type needs struct {
	resource string // the letter in srt, "" for nothing that an account SAS reaches
	account  string // one of these in sp of an account's signature
	table    string // all of these in sp of a table's, "" for never
}

var needed = [actions]needs{
	ReadProperties:  {"s", "r", ""},
	WriteProperties: {"s", "w", ""},
	ReadStats:       {"s", "r", ""},
	ListTables:      {"c", "l", ""},
	CreateTable:     {"c", "cw", ""},
	DeleteTable:     {"c", "d", ""},
	ACL:             {},
	Query:           {"o", "r", "r"},
	Insert:          {"o", "a", "a"},
	Update:          {"o", "u", "u"},
	Upsert:          {"o", "au", "au"},
	DeleteEntity:    {"o", "d", "d"},
}

type kind uint8

const (
	byNobody kind = iota
	byKey
	byAccountSAS
	byTableSAS
	byBearer
)

// Grant is what the sender of a verified request may do. The zero Grant allows
// nothing.
type Grant struct {
	kind          kind
	bounded       bool
	permissions   string
	resourceTypes string
	table         string // folded
	version       string
	bounds        Range
}

// Allow returns a *Refusal unless the grant covers a on the table of that name,
// which only actions on one table need. The keys that an action touches are
// judged by AllowKey, or for a query kept within Bounds.
func (g *Grant) Allow(a Action, table string) error {
	if a >= actions {
		return refusedOperation
	}
	n := &needed[a]
	switch g.kind {
	case byKey:
		return nil
	case byBearer:
		if a == ACL {
			return refusedBearerACL
		}
		return nil
	case byAccountSAS:
		switch {
		case n.resource == "":
			return refusedOperation
		case !strings.Contains(g.resourceTypes, n.resource):
			return refusedResourceType
		case !strings.ContainsAny(g.permissions, n.account):
			return refusedPermission
		}
		return nil
	case byTableSAS:
		if n.table == "" || edm.FoldTableName(table) != g.table {
			return refusedOperation
		}
		for i := range len(n.table) {
			if strings.IndexByte(g.permissions, n.table[i]) < 0 {
				return refusedPermission
			}
		}
		return nil
	case byNobody:
	}
	return refusedAuthentication
}

// AllowKey returns a *Refusal if the grant does not reach the key.
func (g *Grant) AllowKey(key edm.Key) error {
	if g.bounded && !g.bounds.Contains(key) {
		return refusedOperation
	}
	return nil
}

// Bounds returns the range of keys that the grant reaches, false if it reaches
// all.
func (g *Grant) Bounds() (Range, bool) { return g.bounds, g.bounded }

// Version returns the version (sv) of a shared access signature, "" for a
// request that was signed otherwise.
func (g *Grant) Version() string { return g.version }

// Range is a range of keys, both ends included. Keys are in the order of
// edm.Key.Compare.
type Range struct {
	Start    edm.Key // the zero Key is before all others
	End      edm.Key // if HasEnd
	HasEnd   bool
	WholeEnd bool // all rows of End.Partition are in the range, whatever End.Row
}

// Contains reports whether k is in the range.
func (r Range) Contains(k edm.Key) bool {
	if k.Compare(r.Start) < 0 {
		return false
	}
	return !r.HasEnd || k.Compare(r.End) <= 0 || r.WholeEnd && k.Partition == r.End.Partition
}
