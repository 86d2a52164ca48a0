// Package contract is the contract of package store as tests, one Part for each
// part of it.
package contract

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store/storetest/internal/suite"
)

// Part is one part of the contract. Run skips where the backend lacks what the
// part needs.
type Part struct {
	Name string
	run  func(t *tester)
}

// Run holds the backend of t against the part.
func (p Part) Run(t *suite.T) { p.run(&tester{t}) }

// Parts returns the whole contract.
func Parts() []Part {
	return slices.Concat(tableParts, metaParts, entityParts, etagParts, limitParts,
		batchParts, orderParts, queryParts, pageParts, lifeParts, raceParts, syncParts)
}

// tester is a suite.T with what only this package needs.
type tester struct{ *suite.T }

const people = suite.People

type failure = suite.Failure

func key(p, r string) edm.Key { return edm.Key{Partition: p, Row: r} }

func entity(p, r string, props ...edm.Property) edm.Entity {
	return edm.Entity{Key: key(p, r), Properties: props}
}

func prop(name string, v edm.Value) edm.Property { return edm.Property{Name: name, Value: v} }

// number is an entity with one property of one number.
func number(p, r string, n int) edm.Entity {
	return entity(p, r, prop("N", edm.Int32(int32(n))))
}
