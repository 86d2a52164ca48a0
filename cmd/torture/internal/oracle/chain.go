package oracle

import (
	"github.com/tablerock-db/tablerock/edm"
)

// Commit is a commit with the state after it, linked to the commit before. It is immutable.
type Commit struct {
	Before  *Commit // nil for a new database
	Number  int     // of commits up to this one
	Sum     uint64  // of the state
	Effects []Effect
	// MaxTick is the largest Timestamp that callers have received so far.
	MaxTick edm.Ticks
	What    string // description for error messages
}

// Next returns the commit of effects after c. s is the state after them.
func (c *Commit) Next(s *State, what string, effects []Effect) *Commit {
	n := &Commit{Before: c, Number: c.Number + 1, Sum: s.Sum(), Effects: effects, MaxTick: c.MaxTick, What: what}
	for i := range effects {
		n.MaxTick = max(n.MaxTick, effects[i].Entity.Timestamp)
	}
	return n
}

// State rebuilds the state after c.
func (c *Commit) State() *State {
	var chain []*Commit
	for at := c; at != nil; at = at.Before {
		chain = append(chain, at)
	}
	s := NewState()
	for i := len(chain) - 1; i >= 0; i-- {
		for _, e := range chain[i].Effects {
			s.Apply(e)
		}
	}
	return s
}

// Window is the range of states that a database may have: from Low, the last acknowledged
// commit, to High, which includes all running commits.
type Window struct{ Low, High *Commit }

// At returns a window of one state.
func At(c *Commit) Window { return Window{c, c} }

// Find returns the latest commit of w whose state has the sum, or nil.
func (w Window) Find(sum uint64) *Commit {
	for c := w.High; c != nil; c = c.Before {
		if c.Sum == sum {
			return c
		}
		if c == w.Low {
			break
		}
	}
	return nil
}

// FindEarlier returns the latest commit before w whose state has the sum, or nil. A
// database in such a state has lost acknowledged commits.
func (w Window) FindEarlier(sum uint64) *Commit {
	for c := w.Low.Before; c != nil; c = c.Before {
		if c.Sum == sum {
			return c
		}
	}
	return nil
}

// FindWithoutDropped returns the latest commit whose state equals got except for tables that
// later commits dropped, or nil. The rows of a dropped table are deleted when the drop is
// durable, so they are missing even if the device loses the drop.
func (w Window) FindWithoutDropped(got *State) *Commit {
	dropped := map[string]bool{}
	for c := w.High; c != nil; c = c.Before {
		if c.State().sumWithout(dropped) == got.sumWithout(dropped) {
			return c
		}
		for _, e := range c.Effects {
			if e.Kind == Drop {
				dropped[e.Table] = true
			}
		}
	}
	return nil
}

// Insert returns the commit after c of effects that only create tables and entities.
func (c *Commit) Insert(what string, effects ...Effect) *Commit {
	n := &Commit{Before: c, Number: c.Number + 1, Sum: c.Sum, Effects: effects, MaxTick: c.MaxTick, What: what}
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case Create:
			n.Sum += sumTable(e.Info)
		case Put:
			n.Sum += sumEntity(e.Table, &e.Entity)
			n.MaxTick = max(n.MaxTick, e.Entity.Timestamp)
		default:
			panic("oracle: Insert of an effect that changes or removes")
		}
	}
	return n
}
