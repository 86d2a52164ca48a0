package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/server/internal/service"
)

// The refusals of a preflight.
var (
	errNoCors     = &problem{status: http.StatusForbidden, code: "CorsPreflightFailure", message: "CORS not enabled or no matching rule found for this request."}
	errCorsHeader = bad("InvalidHeaderValue", "A required CORS header is not present.")
)

// preflightOperation names, in events, what no route does: any path has it.
var preflightOperation = &operation{name: "Preflight", xml: true}

// preflight answers a browser's question whether a page may send a request. Who
// asks is not known, so that the answer is made of the rules alone.
func (x *exchange) preflight() error {
	x.operation, x.version = preflightOperation, newestVersion
	origin, method := x.r.Header["Origin"], x.r.Header["Access-Control-Request-Method"]
	if len(origin) != 1 || len(method) != 1 || origin[0] == "" || method[0] == "" {
		return errCorsHeader
	}
	headers := x.r.Header["Access-Control-Request-Headers"]
	rule := service.MatchPreflight(x.corsRules(), origin[0], method[0], headers)
	if rule == nil {
		return errNoCors
	}
	x.head()
	x.set("Access-Control-Allow-Origin", rule.Origin(origin[0]))
	x.set("Access-Control-Allow-Methods", method[0])
	if len(headers) > 0 {
		x.set("Access-Control-Allow-Headers", strings.Join(headers, ","))
	}
	x.set("Access-Control-Max-Age", strconv.Itoa(rule.MaxAge))
	x.set("Access-Control-Allow-Credentials", "true")
	return x.sendEmpty(http.StatusOK)
}

// allowOrigin adds to an answer what its rules let a page of another origin see
// of it. It comes after all other headers.
func (x *exchange) allowOrigin() {
	rules := x.corsRules()
	if len(rules) == 0 || x.operation == preflightOperation {
		return
	}
	if x.r.Method == http.MethodGet || x.r.Method == http.MethodHead {
		x.set("Vary", "Origin")
	}
	origin := x.r.Header["Origin"]
	if len(origin) != 1 {
		return
	}
	rule := service.MatchCors(rules, origin[0], x.r.Method)
	if rule == nil {
		return
	}
	allowed := rule.Origin(origin[0])
	x.set("Access-Control-Allow-Origin", allowed)
	if exposed := rule.Exposed(x.w.Header()); exposed != "" {
		x.set("Access-Control-Expose-Headers", exposed)
	}
	if allowed != "*" {
		x.set("Access-Control-Allow-Credentials", "true")
	}
}

// corsRules returns the rules of the account that the request names, none if
// they cannot be read: what is not known to be allowed is not.
func (x *exchange) corsRules() []service.CorsRule {
	if x.account == nil {
		return nil
	}
	p, err := x.account.properties.get(x.r.Context(), x.account.store)
	if err != nil {
		return nil
	}
	return p.Cors
}
