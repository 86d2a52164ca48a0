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

// manyParameters is how many parameters a query can have before its unknown ones are dropped. A
// parameter of three bytes occupies 100, for as long as the request, or its batch, takes.
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
	query := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(name, ";") {
			return nil, ErrQuery
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, ErrQuery
		}
		if n <= manyParameters || isKnown(name) && len(query[name]) < 2 {
			query[name] = append(query[name], value)
		}
	}
	return query, nil
}

// parameters are those of the protocol, beside the options that begin with "$".
var parameters = []string{"api-version", "comp", "NextPartitionKey", "NextRowKey", "NextTableName", "restype", "sv", "timeout"}

// isKnown reports whether name is one of parameters or begins like an option.
func isKnown(name string) bool {
	return strings.HasPrefix(name, "$") || slices.Contains(parameters, name)
}
