package odata

import (
	"bytes"

	"github.com/tablerock-db/tablerock/edm"
)

// layout caches the bytes between the values of an earlier entity. While the
// next entity repeats these bytes, their meaning is the same, so its names are
// neither scanned nor looked up. Without it, the server needs 5 % more CPU for
// batches of inserts (bench/endpoint, batch).
//
// An entity may lack some of the members. Otherwise one missing member would end the
// use of the layout, which costs 12 % of the CPU time of an import of entities with
// optional properties (examples/generate).
type layout struct {
	gaps    []gap
	text    []byte // the bytes of all gaps, concatenated
	matched int    // gaps that the current entity has repeated or skipped
	// skipped is set once the current entity lacks a gap before matched. If it then has
	// a gap that is not in the layout, it is parsed again, with exact set and without
	// skipping, so that the layout is always the sequence of one entity.
	skipped, exact bool
	// recording is set once the current entity has differed. From then on its own
	// gaps replace the remaining ones, until full.
	recording, full bool
}

// gap is the text from the end of one value to the start of the next: a comma, a
// name and a colon. The gap of a type annotation includes the annotation's value.
type gap struct {
	begin, end int // offsets in layout.text
	role       role
	name       string
	member     int      // the index of the member called name, which may be new
	typ        edm.Type // for roleType
}

// role is the meaning of a member.
type role uint8

const (
	roleValue   role = iota + 1 // the value of a property
	roleType                    // the type of a property
	roleIgnored                 // metadata or the Timestamp
)

// Limits of a layout.
const (
	maxLacks    = 8 // consecutive gaps that an entity may lack
	maxGaps     = 512
	maxGapBytes = 16 << 10
)

// reset prepares the layout for the next entity.
func (l *layout) reset() {
	l.matched, l.skipped, l.exact, l.recording, l.full = 0, false, false, false, false
}

// match returns the gaps that src lacks and the gap after them, with which src
// begins, or nil. It advances to the end of that gap.
func (l *layout) match(src []byte) (lacks []gap, g *gap) {
	if l.recording || l.matched == len(l.gaps) {
		return nil, nil
	}
	from := l.matched
	for i := from; i < len(l.gaps); i++ {
		g := &l.gaps[i]
		if bytes.HasPrefix(src, l.text[g.begin:g.end]) {
			l.skipped = l.skipped || i > from
			l.matched = i + 1
			return l.gaps[from:i], g
		}
		if from == 0 || l.exact || i-from == maxLacks || len(src) == 0 || src[0] != ',' {
			break
		}
	}
	return nil, nil
}

// record drops the gaps that the current entity did not repeat and starts recording.
func (l *layout) record() {
	l.recording = true
	l.gaps = l.gaps[:l.matched]
	l.text = l.text[:0]
	if l.matched > 0 {
		l.text = l.text[:l.gaps[l.matched-1].end]
	}
}

// add records a gap. It stops recording at an unknown type, because a gap does not
// hold enough to report that type again.
func (l *layout) add(text []byte, g gap) {
	l.full = l.full || g.role == roleType && g.typ == 0 || len(l.gaps) == maxGaps || len(l.text)+len(text) > maxGapBytes
	if l.full {
		return
	}
	g.begin = len(l.text)
	l.text = append(l.text, text...)
	g.end = len(l.text)
	l.gaps = append(l.gaps, g)
}

// repeatMember parses a member whose text up to the value is the same as in the
// entity of the layout. It reports whether the next member is such a one. The members
// that the entity lacks get no value.
func (p *parser) repeatMember() bool {
	lacks, g := p.layout.match(p.src[p.pos:])
	if g == nil {
		return false
	}
	for i := range lacks {
		if lacks[i].member == len(p.members) {
			p.addMember(lacks[i].name)
		}
	}
	switch n := len(p.members); {
	case g.member == n:
		p.addMember(g.name)
	case g.member < n-1 && !p.members[g.member].found():
		// The entity lacks the annotation but has the value, after other members. Only a
		// restart, by member, keeps the order of the members.
		return false
	}
	p.pos += g.end - g.begin
	m := &p.members[g.member]
	if g.role == roleType {
		m.typed, m.typ = true, g.typ
		return true
	}
	p.parseMemberValue(m, g.role)
	return true
}

// restart parses the entity again, without the members that it lacks.
func (p *parser) restart() {
	p.layout.reset()
	p.layout.exact = true
	p.pos = 0
	clear(p.members)
	p.members = p.members[:0]
}
