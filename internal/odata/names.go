package odata

// nameSet finds names among the members of one entity, and remembers the names
// of the entities before, so that a name costs no memory each time it is seen.
type nameSet struct {
	// last are the names of the entity before in their order. As long as this
	// one's are the same, a name is new without looking for it: the names of
	// one entity are distinct.
	last   []string
	asLast bool
	// slots is a hash table of indices in members plus one, at most half full;
	// it is in use once a name was not as in last.
	slots []uint16
	// known are names seen before.
	known map[string]string
}

const (
	fewSlots      = 64
	maxKnown      = 1024
	maxKnownBytes = 128 // longer names are rare, and no memory is kept for them
)

func (s *nameSet) begin() { s.asLast = true }

// find returns the index of the member called name, or -1 and the name as a
// text.
func (s *nameSet) find(members []member, name []byte) (int, string) {
	n := len(members)
	if s.asLast && n < len(s.last) && s.last[n] == string(name) {
		return -1, s.last[n]
	}
	if s.asLast {
		s.asLast = false
		s.rebuild(members)
	}
	mask := uint32(len(s.slots) - 1)
	for at := hash(name) & mask; s.slots[at] != 0; at = (at + 1) & mask {
		if i := int(s.slots[at] - 1); members[i].name == string(name) {
			return i, ""
		}
	}
	return -1, s.intern(name)
}

// added takes note of the last of members.
func (s *nameSet) added(members []member) {
	if s.asLast {
		return
	}
	if 2*len(members) > len(s.slots) {
		s.rebuild(members)
		return
	}
	s.insert(members[len(members)-1].name, len(members))
}

func (s *nameSet) rebuild(members []member) {
	n := max(fewSlots, len(s.slots))
	for n < 4*len(members) {
		n *= 2
	}
	if n > len(s.slots) {
		s.slots = make([]uint16, n)
	} else {
		clear(s.slots)
	}
	for i := range members {
		s.insert(members[i].name, i+1)
	}
}

func (s *nameSet) insert(name string, slot int) {
	mask := uint32(len(s.slots) - 1)
	at := hash(name) & mask
	for s.slots[at] != 0 {
		at = (at + 1) & mask
	}
	s.slots[at] = uint16(slot)
}

// hash is FNV-1a. MaxNames bounds what names cost that collide on purpose.
func hash[T string | []byte](name T) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h ^ h>>15
}

// intern returns name as a text, the one of before if there is one.
func (s *nameSet) intern(name []byte) string {
	if text, ok := s.known[string(name)]; ok {
		return text
	}
	text := string(name)
	if len(text) <= maxKnownBytes {
		if s.known == nil || len(s.known) >= maxKnown {
			s.known = make(map[string]string)
		}
		s.known[text] = text
	}
	return text
}

// remember keeps the names of members for the next entity.
func (s *nameSet) remember(members []member) {
	if s.asLast && len(members) >= len(s.last) {
		return // the same
	}
	s.last = s.last[:0]
	for i := range members {
		if len(members[i].name) > maxKnownBytes {
			break
		}
		s.last = append(s.last, members[i].name)
	}
	if len(s.slots) > fewSlots && len(members) <= fewSlots/4 {
		s.slots = nil
	}
}
