package uri

import (
	"errors"
	"net/url"
	"strings"
)

// ErrQuery says that the query of a URL cannot be read, or what an option of it says.
var ErrQuery = errors.New("not a query")

// maxParameters is the most parameters that a query may have.
const maxParameters = 10_000

// ParseQuery reads the query of a URL. It is url.ParseQuery, but for semicolons in
// values: clients and people write $format=application/json;odata=nometadata.
func ParseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	query := make(url.Values)
	for n := 0; raw != ""; n++ {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || n == maxParameters || strings.Contains(name, ";") {
			return nil, ErrQuery
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, ErrQuery
		}
		query[name] = append(query[name], value)
	}
	return query, nil
}
