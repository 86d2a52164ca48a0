package server

import (
	"maps"
	"net/http"
	"slices"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// Operations returns the names of all operations, as Event has them, in alphabetical order.
func Operations() []string {
	names := make(map[string]struct{}, len(routes))
	for _, o := range routes {
		names[o.name] = struct{}{}
	}
	for _, name := range writeNames {
		names[name] = struct{}{}
	}
	delete(names, "") // of the routes of writes, and of no OpKind
	return slices.Sorted(maps.Keys(names))
}

// Identify returns the Operation, Account and Table of the Event that r will have. Without
// an Operation, r is a health check, a CORS preflight, or not valid. Identify reads neither
// the body nor the credentials.
func (s *Server) Identify(r *http.Request) Event {
	x := s.idle.Get().(*exchange)
	defer s.idle.Put(x)
	defer x.end()
	x.begin(nil, r)
	if x.locate() != nil || x.account == nil || r.Method == http.MethodOptions {
		return Event{}
	}
	var err error
	if x.method, err = effectiveMethod(r.Method, r.Header["X-Http-Method"]); err != nil {
		return Event{}
	}
	o, err := operationOf(&x.command)
	if err != nil || o == misplacedOperation {
		return Event{}
	}
	return Event{Operation: nameOf(o, &x.command, r.Header["If-Match"]), Account: x.account.name, Table: x.tableName()}
}

// Refuse responds to r as if its operation failed with err, an error of a Store or of
// package faults. It neither executes r nor checks its credentials. Observe is called as
// for an executed request.
func (s *Server) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.exchange(w, r, func(x *exchange) error {
		if located := x.locate(); located != nil {
			return located
		}
		var invalid error
		if x.version, invalid = versionOf(r.Header, x.query); invalid != nil {
			return invalid
		}
		if x.method, invalid = effectiveMethod(r.Method, r.Header["X-Http-Method"]); invalid != nil {
			return invalid
		}
		if x.operation, invalid = operationOf(&x.command); invalid != nil {
			return invalid
		}
		return problem.Of(err)
	})
}

// RefuseBusy refuses r as Refuse does, because of too many other requests.
func (s *Server) RefuseBusy(w http.ResponseWriter, r *http.Request) { s.Refuse(w, r, problem.ErrBusy) }

// Problem returns the status, code and message of the response to an error of a Store, of
// package filter or of the data model.
func Problem(err error) (status int, code, message string) {
	p := problem.Of(err)
	return p.Status, p.Code, p.Message
}
