package request

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// ErrOption reports an OData option that the service does not have.
var ErrOption = errors.New("unknown query option")

// CheckOptions refuses OData options that the service does not have, and repeated ones.
// The error is ErrOption or ErrQuery.
func CheckOptions(query url.Values) error {
	var repeated error // ErrOption takes precedence, whatever the order of the map
	for name, values := range query {
		switch name {
		case "$filter", "$select", "$top", "$format":
			if len(values) > 1 {
				repeated = ErrQuery
			}
		default:
			if strings.HasPrefix(name, "$") {
				return ErrOption
			}
		}
	}
	return repeated
}

// maxSelected is the largest number of names in $select, several times what an entity can
// have.
const maxSelected = 1024

// Top parses $top. The value is from 0 to limit, and limit if it is not given. The error is
// ErrQuery.
func Top(query url.Values, limit int) (n int, given bool, err error) {
	text := query.Get("$top")
	if text == "" {
		return limit, false, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil || n < 0 || n > limit || text[0] == '+' {
		return 0, true, ErrQuery
	}
	return n, true, nil
}

// annotation is part of the name of each annotation, and of no property: a response has the
// annotations of its level whatever is selected.
const annotation = "odata."

// Selection parses $select. It returns the suffix of the metadata URL, which keeps blanks
// between names, and the names, nil for all. An empty $select has a suffix too. The error is
// ErrQuery for more than maxSelected names.
func Selection(query url.Values) (suffix string, names []string, err error) {
	if !query.Has("$select") {
		return "", nil, nil
	}
	text := strings.TrimSpace(query.Get("$select"))
	suffix = "&$select=" + (&url.URL{Fragment: text}).EscapedFragment()
	if text == "" {
		return suffix, nil, nil
	}
	known := make(map[string]struct{})
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "*" {
			return suffix, nil, nil
		}
		if strings.Contains(name, annotation) {
			if names == nil {
				names = []string{} // it does not select all
			}
			continue
		}
		if _, again := known[name]; name != "" && !again {
			known[name] = struct{}{}
			names = append(names, name)
		}
	}
	if len(names) > maxSelected {
		return "", nil, ErrQuery
	}
	return suffix, names, nil
}
