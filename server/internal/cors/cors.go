// Package cors says what pages of other origins may do with an account, by the
// account's rules of cross-origin resource sharing: it checks the rules, and makes
// of them the headers of answers.
package cors

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// The refusals of a preflight.
var (
	// ErrHeader says that the question has not one Origin and one method.
	ErrHeader = errors.New("a required header is missing")
	// ErrNoRule says that no rule allows the request that is asked about.
	ErrNoRule = errors.New("no rule allows the request")
)

// Field is a header of an answer, its name in canonical form.
type Field struct{ Name, Value string }

// Preflight answers a browser's question, with headers asked, whether a page may
// send a request. Who asks is not known, so that the answer is made of the rules
// alone. The error is ErrHeader or ErrNoRule.
func Preflight(rules []Rule, asked http.Header) ([]Field, error) {
	origin, method := asked["Origin"], asked["Access-Control-Request-Method"]
	if len(origin) != 1 || len(method) != 1 || origin[0] == "" || method[0] == "" {
		return nil, ErrHeader
	}
	headers := asked["Access-Control-Request-Headers"]
	rule := matchPreflight(rules, origin[0], method[0], headers)
	if rule == nil {
		return nil, ErrNoRule
	}
	fields := []Field{
		{"Access-Control-Allow-Origin", rule.origin(origin[0])},
		{"Access-Control-Allow-Methods", method[0]},
		{"Access-Control-Max-Age", strconv.Itoa(rule.MaxAge)},
		{"Access-Control-Allow-Credentials", "true"},
	}
	if len(headers) > 0 {
		fields = append(fields, Field{"Access-Control-Allow-Headers", strings.Join(headers, ",")})
	}
	return fields, nil
}

// Answer returns what lets a page of another origin see the answer to r. The
// answer has all its other headers, which are h.
func Answer(rules []Rule, r *http.Request, h http.Header) []Field {
	if len(rules) == 0 {
		return nil
	}
	var fields []Field
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		fields = append(fields, Field{"Vary", "Origin"})
	}
	origin := r.Header["Origin"]
	if len(origin) != 1 {
		return fields
	}
	rule := match(rules, origin[0], r.Method)
	if rule == nil {
		return fields
	}
	allowed := rule.origin(origin[0])
	fields = append(fields, Field{"Access-Control-Allow-Origin", allowed})
	if exposed := rule.exposed(h); exposed != "" {
		fields = append(fields, Field{"Access-Control-Expose-Headers", exposed})
	}
	if allowed != "*" {
		fields = append(fields, Field{"Access-Control-Allow-Credentials", "true"})
	}
	return fields
}
