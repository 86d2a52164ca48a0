package odata

// nameSet finds the members of one entity by name. It retains the names of earlier
// entities, so that a name is allocated once and not for each entity.
type nameSet struct {
	// index maps each name to its position in names. It is a Go map, because clients
	// choose the names and could make the keys of a fixed hash function collide.
	index  map[string]int
	names  []memberName
	entity uint64 // the number of the current entity
	bytes  int    // the length of all names
}

// memberName is a name and the last member that had it.
type memberName struct {
	text   string
	entity uint64 // the entity of that member
	member int    // the member's index in that entity
}

// Limits above which a nameSet drops all names after an entity.
const (
	maxNames     = 1024
	maxNameBytes = 64 << 10
)

// lookup returns the index of the member called name. If the entity has no such
// member, lookup records that member n has the name, and returns -1 and the name as
// a string.
func (s *nameSet) lookup(n int, name []byte) (int, string) {
	i, ok := s.index[string(name)]
	if !ok {
		text := string(name)
		s.add(text, n)
		return -1, text
	}
	if last := &s.names[i]; last.entity != s.entity {
		last.entity, last.member = s.entity, n
		return -1, last.text
	}
	return s.names[i].member, ""
}

// add records that a member of the current entity has the name.
func (s *nameSet) add(name string, member int) {
	if i, ok := s.index[name]; ok {
		s.names[i].entity, s.names[i].member = s.entity, member
		return
	}
	if s.index == nil {
		s.index = make(map[string]int)
	}
	s.index[name] = len(s.names)
	s.names = append(s.names, memberName{name, s.entity, member})
	s.bytes += len(name)
}

// trim drops all names if there are too many.
func (s *nameSet) trim() {
	if len(s.names) > maxNames || s.bytes > maxNameBytes {
		*s = nameSet{}
	}
}
