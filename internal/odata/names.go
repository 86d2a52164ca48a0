package odata

import "strconv"

// find returns the index of the member called name. It appends one if there is none.
func (p *parser) find(name []byte, at int) int {
	n := len(p.members)
	if n > 0 && p.members[n-1].name == string(name) {
		return n - 1
	}
	if i := p.search(name); i >= 0 {
		return i
	}
	if n == MaxNames {
		p.fail(at, "more than "+strconv.Itoa(MaxNames)+" members")
		p.err.Kind = TooManyNames
		return n
	}
	p.addMember(p.memory.text(name))
	return n
}

// search returns the index of the member called name, or -1.
func (p *parser) search(name []byte) int {
	const few = 16
	if len(p.members) <= few {
		for i := range p.members {
			if p.members[i].name == string(name) {
				return i
			}
		}
		return -1
	}
	if p.index == nil {
		p.index = make(map[string]int, 4*few)
	}
	for i := len(p.index); i < len(p.members); i++ {
		p.index[p.members[i].name] = i
	}
	if i, ok := p.index[string(name)]; ok {
		return i
	}
	return -1
}

// keyValue returns the value of m, which holds a key. The parser skips the values of Timestamp and
// of metadata: if m is one of these, keyValue scans the value, unless it is an object or array.
func (p *parser) keyValue(m *member) token {
	if m.value.kind != tokenSkipped {
		return m.value
	}
	if c := p.src[m.value.start]; c == '{' || c == '[' {
		return m.value
	}
	s := scanner{src: p.src, pos: m.value.start}
	return s.value()
}
