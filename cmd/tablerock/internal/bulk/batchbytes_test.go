package bulk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/tabletest"
)

// TestBatchBytes copies entities whose requests are long for their size: no batch is above the
// limit of a request.
func TestBatchBytes(t *testing.T) {
	const wide = "表" // three bytes of JSON and nine of a URL for two bytes
	for _, c := range []struct {
		name       string
		key        int // code units of each key
		properties int
		units      int // of each name
	}{
		{"names", 4, edm.MaxProperties, 18},
		{"short names", 4, edm.MaxProperties, 1},
		{"keys", edm.MaxKeyUnits, edm.MaxProperties, 1},
		{"keys alone", edm.MaxKeyUnits, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := storetest.NewMap(nil)
			if err := from.CreateTable(t.Context(), "Rows"); err != nil {
				t.Fatal(err)
			}
			var props edm.Properties
			for i := range c.properties {
				props = append(props, edm.Property{Name: string(rune('一'+i)) + strings.Repeat(wide, c.units-1), Value: edm.DateTime(edm.MaxTicks)})
			}
			for i := range 110 {
				key := edm.Key{Partition: strings.Repeat(wide, c.key), Row: strings.Repeat(wide, c.key-3) + fmt.Sprintf("%03d", i)}
				if _, err := from.Apply(t.Context(), "Rows", store.Insert(edm.Entity{Key: key, Properties: props})); err != nil {
					t.Fatal(err)
				}
			}
			srv := tabletest.New(t)
			to, err := remote.Open(remote.Endpoint{URL: srv.Endpoint, Account: srv.Account, Key: srv.Key}, remote.Options{})
			if err != nil {
				t.Fatal(err)
			}
			copier := Copier{From: from, To: to}
			if n, err := copier.Table(t.Context(), "Rows"); err != nil || n.Written != 110 {
				t.Errorf("wrote %d entities, error %v", n.Written, err)
			}
			if n, err := Delete(t.Context(), to, "Rows", nil, func(int64) {}); err != nil || n.Rows != 110 {
				t.Errorf("deleted %d entities, error %v", n.Rows, err)
			}
		})
	}
}
