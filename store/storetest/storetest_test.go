package storetest

import (
	"testing"

	"github.com/tablerock-db/tablerock/store"
)

func TestMap(t *testing.T) {
	Run(t, Backend{Open: func(testing.TB) store.Store { return NewMap(nil) }})
}
