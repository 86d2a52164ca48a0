package batch

import "strings"

// maxBoundary limits the characters of a boundary.
const maxBoundary = 70

// cutMediaType splits s at the first semicolon into the type and its parameters.
func cutMediaType(s string) (name, parameters string) {
	name, parameters, _ = strings.Cut(s, ";")
	return trim(name), parameters
}

// boundaryParameter returns the value of the parameter boundary of a media type,
// quoted or not. It skips other parameters. If there is no valid boundary, it returns
// a message as wrong.
func boundaryParameter(parameters string) (boundary, wrong string) {
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
			return "", "the parameter " + quote(name) + " has no closing quote, or text after it"
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
		return "", "no boundary"
	case len(boundary) > maxBoundary:
		return "", "a boundary of more than 70 characters"
	case !isBoundary(boundary):
		return "", "the boundary " + quote(boundary) + " has an invalid character"
	}
	return boundary, ""
}

// cutValue cuts the value of a parameter and the semicolon after it.
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

// isBoundary reports whether s consists of printable ASCII characters except quotes
// and backslashes, and does not end in a blank. MIME allows fewer characters, but
// clients use others.
func isBoundary(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return s[len(s)-1] != ' '
}
