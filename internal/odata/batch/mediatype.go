package batch

import "strings"

// maxBoundary is the most characters of a boundary.
const maxBoundary = 70

// cutMediaType returns the type that s names, and its parameters, which follow
// the first semicolon.
func cutMediaType(s string) (name, parameters string) {
	name, parameters, _ = strings.Cut(s, ";")
	return trim(name), parameters
}

// boundaryOf returns the value of boundary among the parameters of a media type,
// in quotes or not. Other parameters are passed over. It says what is wrong if
// there is none to be had.
func boundaryOf(parameters string) (boundary, wrong string) {
	rest, found := parameters, false
	for {
		rest = strings.TrimLeft(rest, " \t;")
		if rest == "" {
			break
		}
		var name, value string
		end := strings.IndexAny(rest, "=;")
		if end < 0 || rest[end] == ';' {
			_, rest, _ = strings.Cut(rest, ";")
			continue
		}
		name, rest = trim(rest[:end]), strings.TrimLeft(rest[end+1:], " \t")
		var ok bool
		if value, rest, ok = cutValue(rest); !ok {
			return "", "the parameter " + quote(name) + " has no end, or something behind it"
		}
		if equalFold(name, "boundary") {
			if found {
				return "", "two boundaries"
			}
			boundary, found = value, true
		}
	}
	switch {
	case boundary == "":
		return "", "there is no boundary"
	case len(boundary) > maxBoundary:
		return "", "a boundary of more than 70 characters"
	case !isBoundary(boundary):
		return "", "the boundary " + quote(boundary) + " has a character that none may have"
	}
	return boundary, ""
}

// cutValue takes the value of a parameter, and the semicolon behind it.
func cutValue(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		value, rest, _ = strings.Cut(s, ";")
		return strings.TrimRight(value, " \t"), rest, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			rest = strings.TrimLeft(s[i+1:], " \t")
			return b.String(), rest, rest == "" || rest[0] == ';'
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// isBoundary reports whether s is of the characters that show in ASCII, with
// blanks inside. MIME allows fewer; clients take what they like.
func isBoundary(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return s[len(s)-1] != ' '
}
