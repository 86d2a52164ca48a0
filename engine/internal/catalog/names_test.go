package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestChangesAgreeWithMap creates, drops and changes tables in random order and compares
// each catalog with a map. It checks older catalogs again at the end.
func TestChangesAgreeWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type version struct {
		c    *Catalog
		want map[string]string // metadata by name
	}
	want := map[string]string{}
	c := New()
	var versions []version
	for i := range 4000 {
		name := fmt.Sprintf("T%dx", rng.IntN(300))
		if rng.IntN(2) == 0 {
			name = strings.ToLower(name)
		}
		key := edm.FoldTableName(name)
		var ch Change
		var err error
		_, exists := want[key]
		switch {
		case !exists:
			ch, err = c.Create(name, 1)
			want[key] = ""
		case rng.IntN(2) == 0:
			ch, err = c.Drop(name)
			delete(want, key)
		default:
			ch, err = c.SetMeta(name, fmt.Append(nil, i))
			want[key] = fmt.Sprint(i)
		}
		if err != nil {
			t.Fatal(err)
		}
		c = ch.After
		if i%100 == 0 {
			copied := map[string]string{}
			for k, v := range want {
				copied[k] = v
			}
			versions = append(versions, version{c, copied})
		}
	}
	for _, m := range append(versions, version{c, want}) {
		var names []string
		for _, info := range m.c.List("", 0) {
			names = append(names, edm.FoldTableName(info.Name))
		}
		if len(names) != len(m.want) || m.c.Len() != len(m.want) || !slices.IsSorted(names) {
			t.Fatalf("%d tables, want %d in order", len(names), len(m.want))
		}
		for i := range 300 {
			name := fmt.Sprintf("t%dX", i)
			meta, exists := m.want[edm.FoldTableName(name)]
			tab := m.c.Lookup(name)
			if (tab != nil) != exists || exists && (string(tab.Meta) != meta || !m.c.Live(tab.ID)) {
				t.Fatalf("Lookup(%s) = %+v, want %v with %q", name, tab, exists, meta)
			}
		}
	}
}

// TestEqualHashes finds names whose hashes are equal, or equal except for the last bits.
func TestEqualHashes(t *testing.T) {
	hashes := []uint64{7, 7, 7, 7 | 1<<63, 7 | 1<<10, 8}
	var tables []*Table
	var n *names
	for i, h := range hashes {
		tables = append(tables, &Table{ID: uint32(i), Name: fmt.Sprintf("Name%d", i), hash: h})
		n = n.with(tables[i], 0)
	}
	again := *tables[1]
	again.Meta = []byte("meta")
	if got := n.with(&again, 0).find("NAME1", 7); got != &again {
		t.Errorf("after a change: %+v", got)
	}
	for i := range tables {
		for j, tab := range tables {
			want := tab
			if j < i {
				want = nil
			}
			if got := n.find(strings.ToUpper(tab.Name), tab.hash); got != want {
				t.Errorf("without %d tables: table %d is %+v, want %+v", i, j, got, want)
			}
		}
		if n.find("Other", 7) != nil {
			t.Error("found a name that no table has")
		}
		n = n.without(tables[i], 0)
	}
	if n != nil {
		t.Errorf("without all tables: %+v", n)
	}
}
