package shapes

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestShapesLiveSideBySide writes many shapes in turn: none may be made twice,
// or each write would define its shape anew in the log.
func TestShapesLiveSideBySide(t *testing.T) {
	const n = 400
	var cache Cache
	var all []edm.Properties
	for i := range n {
		all = append(all, edm.Properties{
			{Name: "Common", Value: edm.Int32(1)}, {Name: fmt.Sprint("Own", i), Value: edm.Boolean(true)},
		})
	}
	made := make(map[*codec.Shape]bool)
	for range 3 {
		for _, props := range all {
			made[cache.Of(props)] = true
		}
	}
	if len(made) != n {
		t.Errorf("%d shapes were made %d times", n, len(made))
	}
}
