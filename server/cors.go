package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/server/internal/cors"
)

// preflightOperation is the operation of preflights. It has no route, since any path
// accepts it.
var preflightOperation = &operation{name: "Preflight", xml: true}

// preflight responds to a preflight: a browser asks whether a page may send a request.
func (x *exchange) preflight() error {
	x.operation, x.version = preflightOperation, newestVersion
	rules, err := x.corsRules()
	if err != nil {
		return err
	}
	fields, err := cors.Preflight(rules, x.r.Header)
	if err != nil {
		return err
	}
	x.setHead()
	x.setFields(fields)
	return x.sendEmpty(http.StatusOK)
}

// allowOrigin sets the CORS headers of a response. Call it after all other headers are set.
// If the rules cannot be read they allow nothing, and the event has the error if the
// request came from another origin.
func (x *exchange) allowOrigin() {
	if x.operation == preflightOperation {
		return
	}
	rules, err := x.corsRules()
	if err != nil && x.event.Err == nil && len(x.r.Header["Origin"]) > 0 {
		x.event.Err = err
	}
	x.setFields(cors.Fields(rules, x.r, x.w.Header()))
}

func (x *exchange) setFields(fields []cors.Field) {
	for _, f := range fields {
		x.set(f.Name, f.Value)
	}
}

// lateRulesTime limits the reading of the rules for a response after the client's timeout.
const lateRulesTime = time.Second

// corsRules returns the rules of the account, nil without an account.
func (x *exchange) corsRules() ([]cors.Rule, error) {
	if x.account == nil {
		return nil, nil
	}
	ctx := x.r.Context()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lateRulesTime)
		defer cancel()
	}
	p, err := x.account.properties.Get(ctx)
	if err != nil {
		return nil, err
	}
	return p.Cors, nil
}
