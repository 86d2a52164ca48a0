package batch

import "bytes"

// delimiter is what ends a section.
type delimiter uint8

const (
	none    delimiter = iota // the end of the text
	between                  // the boundary's line
	closing                  // the boundary's line with dashes behind it
)

// dashes stand before every boundary, and behind the last.
const dashes = "--"

// sections are what the lines of a boundary cut a text into.
type sections struct {
	rest []byte
	// mark is the boundary with the line end and the dashes before it. Bodies have
	// dashes, and few line ends, so that those are what to look for.
	mark []byte
}

func newSections(text []byte, boundary string) *sections {
	return &sections{text, []byte("\n" + dashes + boundary)}
}

// next takes what stands before the next line of the boundary.
func (s *sections) next() (section []byte, end delimiter) {
	text := s.rest
	from, at := 0, 0 // of a line with the mark, and what stands behind the mark
	if bytes.HasPrefix(text, s.mark[1:]) {
		at = len(s.mark) - 1
	}
	for {
		if at > 0 {
			line, after := cutLine(text[at:])
			if d := delimiterOf(line); d != none {
				s.rest = after
				return text[:from], d
			}
		}
		i := bytes.Index(text[at:], s.mark)
		if i < 0 {
			s.rest = nil
			return text, none
		}
		from = at + i + 1
		at += i + len(s.mark)
	}
}

// delimiterOf says what the line of a boundary is, by what stands behind it.
// Blanks may follow.
func delimiterOf(line []byte) delimiter {
	is := between
	if bytes.HasPrefix(line, []byte(dashes)) {
		is, line = closing, line[len(dashes):]
	}
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return none
		}
	}
	return is
}

// cutLine returns the first line of text, without its end, and what follows it.
func cutLine(text []byte) (line, after []byte) {
	line = text
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		line, after = text[:i], text[i+1:]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, after
}

// cutHead returns the lines of text before the first empty one, which is all of
// text if there is none, and what follows that one.
func cutHead(text []byte) (head, after []byte) {
	after = text
	for len(after) > 0 {
		from := len(text) - len(after)
		var line []byte
		if line, after = cutLine(after); len(line) == 0 {
			return text[:from], after
		}
	}
	return text, nil
}

// skipEmpty returns text without the empty lines it begins with.
func skipEmpty(text []byte) []byte {
	for len(text) > 0 && (text[0] == '\n' || text[0] == '\r') {
		line, after := cutLine(text)
		if len(line) > 0 {
			break
		}
		text = after
	}
	return text
}
