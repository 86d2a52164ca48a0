package odata

import (
	"bytes"

	"github.com/tablerock-db/tablerock/edm"
)

// steps are what stands between the values of an entity, as the one before had it.
// As long as the same bytes come again they mean the same, and are neither taken
// apart nor looked up.
type steps struct {
	all   []step
	text  []byte // of all steps, one behind the other
	taken int    // by the entity at hand
	// diverged says that it has come to other bytes, from which on its own steps take
	// the place of those before, as many of them as are kept.
	diverged, full bool
}

// step leads from the end of one value to the beginning of the next: a comma, a
// name, a colon. One that is about the type of a property ends behind that.
type step struct {
	begin, end int // in the text of all
	means      meaning
	name       string
	member     int      // the index of the one called so, which may be new
	typ        edm.Type // of a property
}

// meaning is what a member says.
type meaning uint8

const (
	meansValue meaning = iota + 1
	meansType
	meansNothing // it is metadata or the Timestamp
)

// Limits of what is kept.
const (
	maxSteps     = 512
	maxStepBytes = 16 << 10
)

func (s *steps) start() { s.taken, s.diverged, s.full = 0, false, false }

// next returns the next step if src begins with it, else nil.
func (s *steps) next(src []byte) *step {
	if s.diverged || s.taken == len(s.all) {
		return nil
	}
	st := &s.all[s.taken]
	if !bytes.HasPrefix(src, s.text[st.begin:st.end]) {
		return nil
	}
	s.taken++
	return st
}

// diverge lets go of the steps that were not taken.
func (s *steps) diverge() {
	s.diverged = true
	s.all = s.all[:s.taken]
	s.text = s.text[:0]
	if s.taken > 0 {
		s.text = s.text[:s.all[s.taken-1].end]
	}
}

// add keeps a step of an entity that has diverged. Of one that leads to an unknown
// type there is too little to take it again.
func (s *steps) add(text []byte, st step) {
	s.full = s.full || st.means == meansType && st.typ == 0 || len(s.all) == maxSteps || len(s.text)+len(text) > maxStepBytes
	if s.full {
		return
	}
	st.begin = len(s.text)
	s.text = append(s.text, text...)
	st.end = len(s.text)
	s.all = append(s.all, st)
}
