package storetest

import (
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/store"
)

// Backend opens, and optionally breaks, the stores of one backend. Run skips the
// tests that need a function that is nil, and says so.
type Backend struct {
	// Open returns a new, empty store. Run closes it; register the release of
	// anything else with tb.Cleanup.
	Open func(tb testing.TB) store.Store
	// Protocol means that the store is a client of the Table protocol, which does not
	// promise all of the contract. Run then uses neither Query.Reverse nor Query.Budget,
	// metadata, TableInfo.Created, the bits of NaNs, the order of selected properties, nor
	// batches above the limit of a request.
	Protocol bool

	// The promises that a backend may make beyond the contract.

	// Snapshot promises that all rows of a Query are of the time of its call.
	Snapshot bool
	// RisingTimestamps promises that Timestamps rise from one Apply to the next that
	// begins after the first returned, for all keys together.
	RisingTimestamps bool
	// ReadOnlyAfterFailure promises that after a failed sync the store returns
	// ErrReadOnly for every write. Without it, Run does not make syncs fail.
	ReadOnlyAfterFailure bool

	// Reopen closes s and returns a store with the same data.
	Reopen func(tb testing.TB, s store.Store) store.Store
	// PowerCut ends s as a loss of power does. It returns a store with the data
	// that was synced; any part of the rest may be lost. Run calls it while no
	// call of s is running, possibly after calls that failed.
	PowerCut func(tb testing.TB, s store.Store) store.Store
	// Kill ends the backend as SIGKILL of all its processes does, and returns a store with
	// the data that is left. Run calls it while calls of s are running. What they
	// acknowledge, also during Kill, must be in the store that Kill returns.
	Kill func(tb testing.TB, s store.Store) store.Store
	// HoldSync blocks each sync of s that covers the write of a call that begins
	// after HoldSync returns. All other syncs must pass, also while this one waits:
	// a store may sync on its own, for example because its log is idle, and a call
	// may run while such a sync does, without a write in the log yet. A backend that
	// sees file operations only can compare its log before a sync with its log when
	// HoldSync was called. Run calls HoldSync while no call of s is running.
	HoldSync func(tb testing.TB, s store.Store) Hold
}

// Hold controls the syncs that HoldSync blocks.
type Hold struct {
	// Held is closed when the first of these syncs blocks. The store must treat
	// any call that begins later as later than the write that this sync covers.
	Held <-chan struct{}
	// Release unblocks the syncs. With a nil error these and all later syncs
	// succeed; otherwise they fail with the error, which is nil unless the backend has
	// ReadOnlyAfterFailure. Run calls it once.
	Release func(fail error)
}

// subtest tests one rule, or a few, of the contract.
type subtest struct {
	name string
	run  func(t *tester)
}

// subtests returns the tests of the whole contract, except the model test.
func subtests() []subtest {
	return slices.Concat(tableTests, metaTests, entityTests, etagTests, limitTests, batchTests, orderTests,
		lifecycleTests, raceTests, syncTests, queryTests)
}

// Run tests a backend against the whole contract of package store, one subtest
// for each group of rules. The subtest Model compares short random sequences of
// operations with NewMap, fewer with -short; see [RunModel] for longer ones.
func Run(t *testing.T, b Backend) {
	for _, s := range subtests() {
		t.Run(s.name, func(t *testing.T) { s.run(newTester(t, b)) })
	}
	t.Run("Model", func(t *testing.T) {
		seeds := uint64(6)
		if testing.Short() {
			seeds = 1
		}
		for seed := range seeds {
			RunModel(t, b, seed, 400)
		}
	})
}
