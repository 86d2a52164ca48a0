package oracle

import (
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
