package server

import (
	"net/http"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// operation is an entry of routes.
type operation struct {
	name         string           // in events, "" for a write of an entity: see nameOf
	action       sharedkey.Action // that the client needs permission for
	checksAccess bool             // run checks the permission: it depends on headers or body
	xml          bool             // has documents in XML, not in OData
	run          func(*exchange) error
}

// route is a method on a resource; comp is the query parameter of that name.
type route struct {
	kind   request.Resource
	method string
	comp   string
}

// routes has every operation of the service. Any other method on a resource is not
// allowed.
var routes = map[route]*operation{
	{request.ServiceRoot, http.MethodGet, "properties"}: {
		name: "GetServiceProperties", action: sharedkey.ReadProperties, xml: true,
		run: (*exchange).serviceProperties,
	},
	{request.ServiceRoot, http.MethodPut, "properties"}: {
		name: "SetServiceProperties", action: sharedkey.WriteProperties, xml: true,
		run: (*exchange).setServiceProperties,
	},
	{request.ServiceRoot, http.MethodGet, "stats"}: {name: "GetServiceStats", action: sharedkey.ReadStats, xml: true, run: (*exchange).serviceStats},
	{request.Tables, http.MethodGet, ""}:           {name: "QueryTables", action: sharedkey.ListTables, run: (*exchange).queryTables},
	{request.Tables, http.MethodPost, ""}:          {name: "CreateTable", action: sharedkey.CreateTable, run: (*exchange).createTable},
	{request.Table, http.MethodGet, ""}:            {name: "GetTable", action: sharedkey.ListTables, run: (*exchange).getTable},
	{request.Table, http.MethodDelete, ""}:         {name: "DeleteTable", action: sharedkey.DeleteTable, run: (*exchange).deleteTable},
	{request.TableACL, http.MethodGet, "acl"}:      {name: "GetTableACL", action: sharedkey.ACL, xml: true, run: (*exchange).tableACL},
	{request.TableACL, http.MethodPut, "acl"}:      {name: "SetTableACL", action: sharedkey.ACL, xml: true, run: (*exchange).setTableACL},
	{request.Entities, http.MethodGet, ""}:         {name: "QueryEntities", action: sharedkey.Query, run: (*exchange).queryEntities},
	{request.Entities, http.MethodPost, ""}:        {checksAccess: true, run: (*exchange).write},
	{request.Entity, http.MethodGet, ""}:           {name: "GetEntity", action: sharedkey.Query, run: (*exchange).getEntity},
	{request.Entity, http.MethodPut, ""}:           {checksAccess: true, run: (*exchange).write},
	{request.Entity, http.MethodPatch, ""}:         {checksAccess: true, run: (*exchange).write},
	{request.Entity, methodMerge, ""}:              {checksAccess: true, run: (*exchange).write},
	{request.Entity, http.MethodDelete, ""}:        {checksAccess: true, run: (*exchange).write},
	{request.Batch, http.MethodPost, ""}:           {name: "Batch", checksAccess: true, run: (*exchange).batch},
}

// nameOf returns the name in events of o, the operation of c. That of a write depends on
// whether the request has If-Match.
func nameOf(o *operation, c *command, ifMatch []string) string {
	if o.name == "" {
		return writeNames[kindOf(c.method, len(ifMatch) > 0)]
	}
	return o.name
}

// misplacedOperation is the operation of every method on a misplaced resource. It
// always fails.
var misplacedOperation = &operation{name: "Misplaced", action: sharedkey.Query, run: (*exchange).misplaced}

// methodMerge is the service's own name for PATCH.
const methodMerge = "MERGE"

// operationOf returns the operation of method and resource.
func operationOf(c *command) (*operation, error) {
	key := route{kind: c.target.Kind, method: c.method}
	switch c.target.Kind {
	case request.Schema:
		return nil, problem.ErrNotImplemented
	case request.ServiceRoot:
		if c.query.Get("restype") != "service" {
			return nil, problem.ErrURI
		}
		key.comp = c.query.Get("comp")
		if key.comp != "properties" && key.comp != "stats" {
			return nil, problem.ErrComp
		}
	case request.TableACL:
		key.comp = "acl"
	case request.Batch, request.Tables, request.Table, request.Entities, request.Entity, request.Misplaced:
		if comp := c.query.Get("comp"); comp == "properties" || comp == "stats" {
			return nil, problem.ErrComp
		}
	}
	if c.target.Kind == request.Misplaced {
		return misplacedOperation, nil
	}
	if o := routes[key]; o != nil {
		return o, nil
	}
	return nil, notAllowed(key)
}

// notAllowed refuses a method that the resource does not have, and names those that it
// has.
func notAllowed(r route) *problem.Problem {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, methodMerge, http.MethodDelete} {
		if routes[route{r.kind, m, r.comp}] != nil {
			methods = append(methods, m)
		}
	}
	return problem.MethodNotAllowed(methods)
}
