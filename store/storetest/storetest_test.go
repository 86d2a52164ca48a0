package storetest

import (
	"testing"

	"github.com/tablerock-db/tablerock/store"
)

func TestMap(t *testing.T) {
	Run(t, Backend{Snapshot: true, RisingTimestamps: true, Open: func(testing.TB) store.Store { return &hooks{mapStore: newMap(fixedClock)} }})
}
