package odata

// nameSet finds names among the members of one entity, and remembers the names
// of the entities before, so that a name costs no memory each time it is seen.
type nameSet struct {
	// known are indices in seen of all names there. A table with a hash of its
	// own would be faster, until somebody sends names that collide.
	known  map[string]int
	seen   []seenName
	entity uint64 // counts them
	bytes  int    // of the names in seen
}

// seenName is a name, and which of the members of which entity had it last.
type seenName struct {
	text   string
	entity uint64
	member int
}

const (
	maxKnown      = 1024
	maxKnownBytes = 64 << 10
)

// find returns the index of the member called name. If there is none, it returns
// -1 and the name as a text, and the next of n members is the one called so.
func (s *nameSet) find(n int, name []byte) (int, string) {
	i, ok := s.known[string(name)]
	if !ok {
		text := string(name)
		s.see(text, n)
		return -1, text
	}
	if was := &s.seen[i]; was.entity != s.entity {
		was.entity, was.member = s.entity, n
		return -1, was.text
	}
	return s.seen[i].member, ""
}

// see takes note that a member has that name.
func (s *nameSet) see(name string, member int) {
	if i, ok := s.known[name]; ok {
		s.seen[i].entity, s.seen[i].member = s.entity, member
		return
	}
	if s.known == nil {
		s.known = make(map[string]int)
	}
	s.known[name] = len(s.seen)
	s.seen = append(s.seen, seenName{name, s.entity, member})
	s.bytes += len(name)
}

// forget lets go of all names when they have become many.
func (s *nameSet) forget() {
	if len(s.seen) > maxKnown || s.bytes > maxKnownBytes {
		*s = nameSet{}
	}
}
