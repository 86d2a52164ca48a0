// Package contract is the contract of package store as tests, one Part for each
// part of it but for what it says of queries.
package contract

import (
	"slices"

	"github.com/tablerock-db/tablerock/store/storetest/internal/suite"
)

// part is a suite.Part of a tester.
type part struct {
	name string
	run  func(t *tester)
}

// Parts returns one Part for each part of the contract.
func Parts() []suite.Part {
	var all []suite.Part
	for _, p := range slices.Concat(tableParts, metaParts, entityParts, etagParts, limitParts,
		batchParts, orderParts, lifeParts, raceParts, syncParts) {
		all = append(all, suite.Part{Name: p.name, Run: func(t *suite.T) { p.run(&tester{t}) }})
	}
	return all
}

// tester is a suite.T with what only this package needs.
type tester struct{ *suite.T }

// What nearly every part uses.
const people = suite.People

type failure = suite.Failure

var (
	key    = suite.Key
	entity = suite.Entity
	prop   = suite.Prop
	number = suite.Number
)
