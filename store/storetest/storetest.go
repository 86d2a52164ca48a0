package storetest

import (
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/store/storetest/internal/contract"
	"github.com/tablerock-db/tablerock/store/storetest/internal/queries"
	"github.com/tablerock-db/tablerock/store/storetest/internal/suite"
)

// Backend is how Run gets at the stores of one backend. A function that is nil
// skips the tests that need it, which say so.
type Backend = suite.Backend

// Hold is a hand on the syncs of a store.
type Hold = suite.Hold

// parts returns the whole contract.
func parts() []suite.Part { return slices.Concat(contract.Parts(), queries.Parts()) }

// Run holds a backend against the whole contract of package store, and compares
// a few random sequences of operations with Map.
func Run(t *testing.T, b Backend) {
	for _, p := range parts() {
		t.Run(p.Name, func(t *testing.T) { p.Run(suite.New(t, b)) })
	}
	t.Run("Model", func(t *testing.T) {
		for seed := range uint64(6) {
			RunModel(t, b, seed, 400)
		}
	})
}
