package request

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrOption says that a query has an option of OData that the service has not.
var ErrOption = errors.New("not an option of the service")

// CheckOptions refuses options of OData that the service has not, and those that are
// given twice. It fails with ErrOption or ErrQuery.
func CheckOptions(query url.Values) error {
	var twice error // which is for later, since a query has no order
	for name, values := range query {
		switch name {
		case "$filter", "$select", "$top", "$format":
			if len(values) > 1 {
				twice = ErrQuery
			}
		default:
			if strings.HasPrefix(name, "$") {
				return ErrOption
			}
		}
	}
	return twice
}

// maxSelected is the most members that $select can name: those that an entity
// can have, and as many that it has not.
const maxSelected = 1024

// Top reads $top, which is at most most, and is most where it is not given.
func Top(query url.Values, most int) (n int, given bool, err error) {
	text := query.Get("$top")
	if text == "" {
		return most, false, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil || n < 0 || n > most || text[0] == '+' {
		return 0, true, ErrQuery
	}
	return n, true, nil
}

// Selection reads $select: what it adds to the metadata URL, blanks included, and
// the members that it names, nil for all.
func Selection(query url.Values) (suffix string, names []string) {
	given := query.Get("$select")
	if given == "" {
		return "", nil
	}
	text := strings.TrimSpace(given)
	suffix = "&$select=" + (&url.URL{Fragment: text}).EscapedFragment()
	if text == "" {
		return suffix, nil
	}
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "*":
			return suffix, nil
		case name != "" && !slices.Contains(names, name) && len(names) < maxSelected:
			names = append(names, name)
		}
	}
	return suffix, names
}
