package request

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrQuery says that the query of a URL cannot be read, or what an option of it says.
var ErrQuery = errors.New("not a query")

// ErrTimeout says that the timeout parameter of a query is no number of seconds.
var ErrTimeout = errors.New("not a timeout")

// maxTimeout is the longest that a client can have a request take.
const maxTimeout = 30 * time.Second

// Timeout returns for how long the client wants its request carried out at most, 0
// if it does not say or has no wish.
func Timeout(query url.Values) (time.Duration, error) {
	text := query.Get("timeout")
	if strings.Trim(text, "0123456789") != "" {
		return 0, ErrTimeout
	}
	text = strings.TrimLeft(text, "0")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return maxTimeout, nil // more digits than it can have
	}
	return min(time.Duration(seconds)*time.Second, maxTimeout), nil
}

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
