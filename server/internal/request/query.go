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

// maxParameters is the most parameters that a query may have. net/url has the same limit
// in newer releases.
const maxParameters = 10_000

// ParseQuery parses the query of a URL. Unlike url.ParseQuery it accepts semicolons in
// values: clients write $format=application/json;odata=nometadata.
func ParseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	if strings.Count(raw, "&") >= maxParameters {
		return nil, ErrQuery
	}
	query, err := url.ParseQuery(strings.ReplaceAll(raw, ";", "%3B"))
	if err != nil {
		return nil, ErrQuery
	}
	for name := range query {
		if strings.Contains(name, ";") {
			return nil, ErrQuery
		}
	}
	return query, nil
}
