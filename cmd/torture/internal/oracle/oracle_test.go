package oracle

import (
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func put(table, row string, ts edm.Ticks) Effect {
	return Effect{Kind: Put, Table: table, Entity: edm.Entity{Key: edm.Key{Row: row}, Timestamp: ts}}
}

// TestSum compares the sums of states that have different histories.
func TestSum(t *testing.T) {
	create := Effect{Kind: Create, Table: "t", Info: store.TableInfo{Name: "T", Created: 1}}
	remove := Effect{Kind: Remove, Table: "t", Entity: edm.Entity{Key: edm.Key{Row: "a"}}}
	build := func(effects ...Effect) *State {
		s := NewState()
		for _, e := range effects {
			s.Apply(e)
		}
		return s
	}
	for _, c := range []struct {
		name string
		a, b *State
		same bool
	}{
		{"order", build(create, put("t", "a", 2), put("t", "b", 3)), build(create, put("t", "b", 3), put("t", "a", 2)), true},
		{"removal", build(create, put("t", "a", 2), remove), build(create), true},
		{"overwriting", build(create, put("t", "a", 2), put("t", "a", 3)), build(create, put("t", "a", 3)), true},
		{"time stamp", build(create, put("t", "a", 2)), build(create, put("t", "a", 3)), false},
		{"row", build(create, put("t", "a", 2)), build(create, put("t", "b", 2)), false},
		{"metadata", build(create, Effect{Kind: SetMeta, Table: "t", Meta: []byte("m")}), build(create), false},
		{"metadata cleared", build(create, Effect{Kind: SetMeta, Table: "t", Meta: []byte("m")}, Effect{Kind: SetMeta, Table: "t"}), build(create), true},
		{"table dropped", build(create, put("t", "a", 2), Effect{Kind: Drop, Table: "t"}), build(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.a.Sum() == c.b.Sum(); got != c.same {
				t.Errorf("equal sums: %v, want %v; they differ in: %s", got, c.same, c.a.Diff(c.b))
			}
			if diff := c.a.Diff(c.b); (diff == "") != c.same {
				t.Errorf("got the difference %q, want none: %v", diff, c.same)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	state := NewState()
	at := &Commit{}
	var chain []*Commit
	for _, e := range []Effect{{Kind: Create, Table: "t", Info: store.TableInfo{Name: "t"}}, put("t", "a", 1), put("t", "b", 2), put("t", "c", 3)} {
		state.Apply(e)
		at = at.Next(state, "", []Effect{e})
		chain = append(chain, at)
	}
	w := Window{Low: chain[1], High: chain[2]}
	for i, want := range []bool{false, true, true, false} {
		if got := w.Find(chain[i].Sum); (got == chain[i]) != want || !want && got != nil {
			t.Errorf("commit %d: found %v, want %v", i+1, got, want)
		}
	}
	if w.FindEarlier(chain[0].Sum) != chain[0] || w.FindEarlier(chain[3].Sum) != nil {
		t.Error("FindEarlier does not find the commit before the window, or finds one after it")
	}
	if got := chain[3].State(); got.Sum() != chain[3].Sum || chain[3].MaxTick != 3 {
		t.Errorf("rebuilt state differs: %s", state.Diff(got))
	}
}

// TestResolveOrder checks the order of the properties after each kind of op: that of
// an insert is kept, and all others sort by UTF-16 code units.
func TestResolveOrder(t *testing.T) {
	one := edm.Int32(1)
	names := func(props edm.Properties) (out []string) {
		for _, p := range props {
			out = append(out, p.Name)
		}
		return out
	}
	given := edm.Properties{{Name: "\uf900", Value: one}, {Name: "\U00010400", Value: one}, {Name: "N", Value: one}}
	inserted, sorted := names(given), []string{"N", "\U00010400", "\uf900"}
	key := edm.Key{Partition: "p", Row: "r"}
	for _, c := range []struct {
		kind  store.OpKind
		exist bool
		want  []string
	}{
		{store.OpInsert, false, inserted},
		{store.OpInsertOrMerge, false, sorted},
		{store.OpInsertOrReplace, false, sorted},
		{store.OpMerge, true, sorted},
		{store.OpReplace, true, sorted},
	} {
		table := Table{Rows: map[edm.Key]edm.Entity{}}
		if c.exist {
			table.Rows[key] = edm.Entity{Key: key, Properties: given[:1]}
		}
		props, put, err := table.Resolve(&store.Op{Kind: c.kind, Entity: edm.Entity{Key: key, Properties: given}, IfMatch: store.Any})
		if !put || err != nil || !slices.Equal(names(props), c.want) || !slices.Equal(names(given), inserted) {
			t.Errorf("%v: %q, %v, %v; want %q, and the op unchanged: %q", c.kind, names(props), put, err, c.want, names(given))
		}
	}
}
