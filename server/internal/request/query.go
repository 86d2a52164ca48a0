package request

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrQuery reports that the query of a URL, or the value of an option, is not valid.
var ErrQuery = errors.New("invalid query")

// ErrTimeout reports that the parameter timeout is not a number of seconds.
var ErrTimeout = errors.New("invalid timeout")

// maxTimeout is the longest timeout.
const maxTimeout = 30 * time.Second

// Timeout returns the parameter timeout, at most maxTimeout. It returns 0, no timeout, if the
// parameter is 0, empty or not given. The error is ErrTimeout.
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
		return maxTimeout, nil // too many digits for an int32
	}
	return min(time.Duration(seconds)*time.Second, maxTimeout), nil
}

// maxParameters is the most parameters that a query may have. net/url has the same limit
// in newer releases.
const maxParameters = 10_000

// manyParameters is how many parameters a query has whose unknown ones are dropped. A parameter
// of three bytes occupies 100, for as long as the request, or its batch, takes.
const manyParameters = 64

// ParseQuery parses the query of a URL. Unlike url.ParseQuery it accepts semicolons in
// values: clients write $format=application/json;odata=nometadata. If there are many
// parameters, the result has only those that the protocol knows, each at most twice.
func ParseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	n := strings.Count(raw, "&") + 1
	if n > maxParameters {
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
	if n > manyParameters {
		query = known(query)
	}
	return query, nil
}

// parameters are those of the protocol, beside the options that begin with "$".
var parameters = []string{"api-version", "comp", "NextPartitionKey", "NextRowKey", "NextTableName", "restype", "sv", "timeout"}

// known returns the options and parameters in query, with at most two values of each: the
// second one tells that it is repeated.
func known(query url.Values) url.Values {
	kept := make(url.Values)
	for name, values := range query {
		if strings.HasPrefix(name, "$") || slices.Contains(parameters, name) {
			kept[name] = slices.Clone(values[:min(len(values), 2)])
		}
	}
	return kept
}
