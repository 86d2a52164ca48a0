package catalog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestChangesAgreeWithMap creates, drops and changes tables in random order and compares
// each catalog with a map. It checks older catalogs again at the end, and one that is loaded from
// the rows that the changes store.
func TestChangesAgreeWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type version struct {
		c    *Catalog
		want map[string]string // metadata by name
	}
	want := map[string]string{}
	c := New()
	var versions []version
	rows := map[edm.Key]edm.Entity{}
	for i := range 4000 {
		name := fmt.Sprintf("T%dx", rng.IntN(300))
		if i >= 3998 { // create a table and drop it: its id is not used again
			name = "Last"
		}
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
		case rng.IntN(2) == 0 || i == 3999:
			ch, err = c.Drop(name)
			delete(want, key)
		default:
			want[key] = []string{"", fmt.Sprint(i)}[i%2]
			meta := []byte(want[key])
			ch, err = c.SetMeta(name, meta)
			clear(meta)
		}
		if err != nil {
			t.Fatal(err)
		}
		change := func(ch Change) {
			for _, e := range ch.Put {
				rows[e.Key] = e
			}
			for _, key := range ch.Delete {
				delete(rows, key)
			}
			c = ch.After
			if c.Entities() != len(rows) {
				t.Fatalf("%d entities, want %d", c.Entities(), len(rows))
			}
		}
		if change(ch); i == 2000 {
			account := []byte("account")
			change(c.SetAccount(account))
			clear(account) // it belongs to the caller
		}
		if i%100 == 0 {
			copied := map[string]string{}
			for k, v := range want {
				copied[k] = v
			}
			versions = append(versions, version{c, copied})
		}
	}
	loaded, err := load(slices.Collect(maps.Values(rows))...)
	if err != nil || loaded.Next() != c.Next() || string(loaded.Account()) != "account" {
		t.Fatalf("loaded: next id %d, account %q, error %v", loaded.Next(), loaded.Account(), err)
	}
	for _, m := range append(versions, version{c, want}, version{loaded, want}) {
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
			if (tab != nil) != exists || exists && (string(tab.Meta) != meta || tab.Meta != nil && meta == "" || !m.c.Live(tab.ID)) {
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
	for i := range 3 {
		again := *tables[i]
		again.Meta = []byte("meta")
		if got := n.with(&again, 0).find(fmt.Sprint("NAME", i), 7); got != &again {
			t.Errorf("after a change: %+v", got)
		}
	}
	tables[0], tables[1] = tables[1], tables[0] // the order of removal
	for i := range tables {
		for j, tab := range tables {
			want := tab
			if j < i {
				want = nil
			}
			if got := n.find(strings.ToUpper(tab.Name), tab.hash); got != want {
				t.Errorf("without %d tables: table %d is %+v, want %+v", i, j, got, want)
			}
			if got := n.exact(tab.Name); got != nil && got != want {
				t.Errorf("without %d tables: the exact name of table %d is %+v, want %+v", i, j, got, want)
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
