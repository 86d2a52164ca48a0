package sharedkey

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// Action is an operation that a request asks for.
type Action uint8

// The actions. Query is a query or the read of one entity. ListTables includes the read
// of one table. Update is a merge or replace of an existing entity (with If-Match);
// Upsert is one without If-Match.
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

// requirement is what an action requires of a shared access signature.
type requirement struct {
	resource string // the required letter of srt, "" if no account SAS allows the action
	one      string // the letters of which an account SAS needs one in sp, "" for an action on entities
	all      string // the letters that any SAS needs in sp for an action on entities
}

var requirements = [actions]requirement{
	ReadProperties:  {"s", "r", ""},
	WriteProperties: {"s", "w", ""},
	ReadStats:       {"s", "r", ""},
	ListTables:      {"c", "l", ""},
	CreateTable:     {"c", "cw", ""},
	DeleteTable:     {"c", "d", ""},
	ACL:             {},
	Query:           {"o", "", "r"},
	Insert:          {"o", "", "a"},
	Update:          {"o", "", "u"},
	Upsert:          {"o", "", "au"},
	DeleteEntity:    {"o", "", "d"},
}

type kind uint8

const (
	noGrant kind = iota
	byKey
	byAccountSAS
	byTableSAS
	byBearer
)

// Grant holds the permissions of a verified request. The zero Grant allows nothing.
type Grant struct {
	kind          kind
	bounded       bool
	permissions   string
	resourceTypes string
	table         string // folded
	bounds        Range
}

// Allow returns a *Refusal unless the grant covers action a on the table. Actions
// that do not concern one table ignore it. Check the key of an entity with AllowKey,
// and restrict a query to Bounds.
func (g *Grant) Allow(a Action, table string) error {
	if a >= actions {
		return refusedOperation
	}
	n := &requirements[a]
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
		case n.one != "" && !strings.ContainsAny(g.permissions, n.one):
			return refusedPermission
		}
		return g.allowAll(n.all)
	case byTableSAS:
		if n.all == "" || edm.FoldTableName(table) != g.table {
			return refusedOperation
		}
		return g.allowAll(n.all)
	case noGrant:
	}
	return refusedAuthentication
}

// allowAll returns a *Refusal unless the signature has all letters.
func (g *Grant) allowAll(letters string) error {
	for i := range len(letters) {
		if strings.IndexByte(g.permissions, letters[i]) < 0 {
			return refusedPermission
		}
	}
	return nil
}

// AllowKey returns a *Refusal if the grant does not cover the key.
func (g *Grant) AllowKey(key edm.Key) error {
	if g.bounded && !g.bounds.Contains(key) {
		return refusedOperation
	}
	return nil
}

// Bounds returns the range of keys that the grant covers, or false if it covers all
// keys.
func (g *Grant) Bounds() (Range, bool) { return g.bounds, g.bounded }

// Restrict restricts a filter to the keys of the grant, so that neither a query nor its
// continuation leaves them.
func (g *Grant) Restrict(e *filter.Expr) *filter.Expr {
	if !g.bounded {
		return e
	}
	r := g.bounds
	var to filter.Bound
	switch {
	case r.HasEnd && r.WholeEnd:
		to = filter.Bound{Kind: filter.AfterPartition, Key: r.End}
	case r.HasEnd:
		to = filter.Bound{Kind: filter.AfterRow, Key: r.End}
	}
	return filter.And(e, filter.Keys(filter.Bound{Kind: filter.BeforeRow, Key: r.Start}, to))
}

// Range is a range of keys in the order of edm.Key.Compare. Both bounds are inclusive.
type Range struct {
	Start    edm.Key // the zero Key is the smallest
	End      edm.Key // valid if HasEnd
	HasEnd   bool
	WholeEnd bool // the range contains all rows of End.Partition; ignore End.Row
}

// Contains reports whether k is in the range.
func (r Range) Contains(k edm.Key) bool {
	if k.Compare(r.Start) < 0 {
		return false
	}
	return !r.HasEnd || k.Compare(r.End) <= 0 || r.WholeEnd && k.Partition == r.End.Partition
}
