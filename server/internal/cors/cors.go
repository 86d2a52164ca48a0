// Package cors implements cross-origin resource sharing: it checks the rules of an account,
// and derives the headers of responses from them.
package cors

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// The refusals of a preflight.
var (
	// ErrHeader reports that a preflight does not have one Origin and one method.
	ErrHeader = errors.New("a required header is missing")
	// ErrNoRule reports that no rule allows the request of a preflight.
	ErrNoRule = errors.New("no rule allows the request")
)

// Field is a header of a response. Its name is in canonical form.
type Field struct{ Name, Value string }

// Preflight returns the headers of the response to a preflight with header h, in which a
// browser asks whether a page may send a request. A preflight has no credentials, so only
// the rules decide. The error is ErrHeader or ErrNoRule.
func Preflight(rules []Rule, h http.Header) ([]Field, error) {
	origin, method := h["Origin"], h["Access-Control-Request-Method"]
	if len(origin) != 1 || len(method) != 1 || origin[0] == "" || method[0] == "" {
		return nil, ErrHeader
	}
	headers := h["Access-Control-Request-Headers"]
	rule := match(rules, origin[0], method[0], headers)
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

// Fields returns the headers that let a page of another origin read the response to r. h
// has all other headers of that response. The response to a read varies with the origin,
// unless a rule allows all origins: that rule also allows requests without an origin.
func Fields(rules []Rule, r *http.Request, h http.Header) []Field {
	if len(rules) == 0 {
		return nil
	}
	origin := ""
	if values := r.Header["Origin"]; len(values) == 1 {
		origin = values[0]
	}
	var fields []Field
	allowed := ""
	rule := match(rules, origin, r.Method, nil)
	if rule != nil {
		allowed = rule.origin(origin)
	}
	if allowed != "*" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		fields = append(fields, Field{"Vary", "Origin"})
	}
	if rule == nil {
		return fields
	}
	fields = append(fields, Field{"Access-Control-Allow-Origin", allowed})
	if exposed := rule.exposed(h); exposed != "" {
		fields = append(fields, Field{"Access-Control-Expose-Headers", exposed})
	}
	if allowed != "*" {
		fields = append(fields, Field{"Access-Control-Allow-Credentials", "true"})
	}
	return fields
}
