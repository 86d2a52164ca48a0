package storetest_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// directoryStore is the backend under test. It knows its directory.
type directoryStore struct {
	*engine.DB
	dir string
}

func open(tb testing.TB, dir string) store.Store {
	db, err := engine.Open(dir, engine.Options{SegmentBytes: 64 << 10})
	if err != nil {
		tb.Fatal(err)
	}
	return directoryStore{db, dir}
}

// The test of a backend consists of a Backend and a call of Run. PowerCut and
// HoldSync are nil here, so Run skips the tests that need them.
func ExampleRun() {
	_ = func(t *testing.T) { // such as TestContract
		storetest.Run(t, storetest.Backend{
			Snapshot: true, RisingTimestamps: true, // promises beyond the contract
			Open: func(tb testing.TB) store.Store { return open(tb, tb.TempDir()) },
			Reopen: func(tb testing.TB, s store.Store) store.Store {
				if err := s.Close(); err != nil {
					tb.Fatal(err)
				}
				return open(tb, s.(directoryStore).dir)
			},
		})
	}
}
