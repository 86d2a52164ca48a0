package oracle

import (
	"github.com/tablerock-db/tablerock/edm"
)

// Commit is a state of a database, as the last link of the chain of commits
// that led to it. It never changes once it is made.
type Commit struct {
	Before  *Commit // nil for a new database
	Number  int     // of commits up to this one
	Sum     uint64  // of the state
	Effects []Effect
	// MaxTick is the greatest Timestamp that a caller has been given so far.
	MaxTick edm.Ticks
	What    string // what the commit was, for failures
}

// Next returns the commit of effects, which s, the state that c led to, has
// taken over already.
func (c *Commit) Next(s *State, what string, effects []Effect) *Commit {
	n := &Commit{Before: c, Number: c.Number + 1, Sum: s.Sum(), Effects: effects, MaxTick: c.MaxTick, What: what}
	for i := range effects {
		n.MaxTick = max(n.MaxTick, effects[i].Entity.Timestamp)
	}
	return n
}

// State rebuilds the state that c led to.
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

// Window is the states that a database may be in: from Low, which every caller
// has been told of, to High, which includes all that was under way.
type Window struct{ Low, High *Commit }

// At returns a window of one state.
func At(c *Commit) Window { return Window{c, c} }

// Find returns the latest state of w with a sum, nil if there is none.
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

// FindEarlier returns the latest state before w with a sum, nil if there is
// none: what the loss of acknowledged commits leads to.
func (w Window) FindEarlier(sum uint64) *Commit {
	for c := w.Low.Before; c != nil; c = c.Before {
		if c.Sum == sum {
			return c
		}
	}
	return nil
}

// FindWithoutDropped returns the latest state that equals got in all tables but
// those that later commits dropped, nil if there is none. Rows of a dropped
// table are forgotten as soon as the drop is durable, so they are gone even if
// the device takes the drop itself back.
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

// Insert returns the commit of effects that only add what was not there: tables
// and entities.
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
