package server

import (
	"net/http"

	"github.com/tablerock-db/tablerock/server/internal/cors"
)

// The refusals of a preflight.
var (
	errNoCors     = &problem{status: http.StatusForbidden, code: "CorsPreflightFailure", message: "CORS not enabled or no matching rule found for this request."}
	errCorsHeader = bad("InvalidHeaderValue", "A required CORS header is not present.")
)

// preflightOperation names, in events, what no route does: any path has it.
var preflightOperation = &operation{name: "Preflight", xml: true}

// preflight answers a browser's question whether a page may send a request.
func (x *exchange) preflight() error {
	x.operation, x.version = preflightOperation, newestVersion
	fields, err := cors.Preflight(x.corsRules(), x.r.Header)
	if err != nil {
		return err
	}
	x.head()
	x.setFields(fields)
	return x.sendEmpty(http.StatusOK)
}

// allowOrigin adds to an answer what its rules let a page of another origin see
// of it. It comes after all other headers.
func (x *exchange) allowOrigin() {
	if x.operation != preflightOperation {
		x.setFields(cors.Answer(x.corsRules(), x.r, x.w.Header()))
	}
}

func (x *exchange) setFields(fields []cors.Field) {
	for _, f := range fields {
		x.set(f.Name, f.Value)
	}
}

// corsRules returns the rules of the account that the request names, none if
// they cannot be read: what is not known to be allowed is not.
func (x *exchange) corsRules() []cors.Rule {
	if x.account == nil {
		return nil
	}
	p, err := x.account.properties.Get(x.r.Context())
	if err != nil {
		return nil
	}
	return p.Cors
}
