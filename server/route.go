package server

import (
	"net/http"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// operation is one row of the table of routes.
type operation struct {
	name   string
	action sharedkey.Action
	xml    bool // speaks XML, not OData
	run    func(*exchange) error
}

// route is a method on a resource; comp is the query parameter of that name.
type route struct {
	kind   request.Resource
	method string
	comp   string
}

// routes is every operation of the service. A method that stands here for no
// resource of the kind is refused as not allowed.
var routes = map[route]*operation{
	{request.ServiceRoot, http.MethodGet, "properties"}: {"GetServiceProperties", sharedkey.ReadProperties, true, (*exchange).serviceProperties},
	{request.ServiceRoot, http.MethodPut, "properties"}: {"SetServiceProperties", sharedkey.WriteProperties, true, (*exchange).setServiceProperties},
	{request.ServiceRoot, http.MethodGet, "stats"}:      {"GetServiceStats", sharedkey.ReadStats, true, (*exchange).serviceStats},
	{request.Tables, http.MethodGet, ""}:                {"QueryTables", sharedkey.ListTables, false, (*exchange).queryTables},
	{request.Tables, http.MethodPost, ""}:               {"CreateTable", sharedkey.CreateTable, false, (*exchange).createTable},
	{request.Table, http.MethodGet, ""}:                 {"GetTable", sharedkey.ListTables, false, (*exchange).getTable},
	{request.Table, http.MethodDelete, ""}:              {"DeleteTable", sharedkey.DeleteTable, false, (*exchange).deleteTable},
	{request.TableACL, http.MethodGet, "acl"}:           {"GetTableACL", sharedkey.ACL, true, (*exchange).tableACL},
	{request.TableACL, http.MethodPut, "acl"}:           {"SetTableACL", sharedkey.ACL, true, (*exchange).setTableACL},
	{request.Entities, http.MethodGet, ""}:              {"QueryEntities", sharedkey.Query, false, (*exchange).queryEntities},
	{request.Entities, http.MethodPost, ""}:             {"InsertEntity", asked, false, (*exchange).write},
	{request.Entity, http.MethodGet, ""}:                {"GetEntity", sharedkey.Query, false, (*exchange).getEntity},
	{request.Entity, http.MethodPut, ""}:                {"ReplaceEntity", asked, false, (*exchange).write},
	{request.Entity, http.MethodPatch, ""}:              {"MergeEntity", asked, false, (*exchange).write},
	{request.Entity, methodMerge, ""}:                   {"MergeEntity", asked, false, (*exchange).write},
	{request.Entity, http.MethodDelete, ""}:             {"DeleteEntity", asked, false, (*exchange).write},
	{request.Batch, http.MethodPost, ""}:                {"Batch", asked, false, (*exchange).batch},
}

// misplacedOperation is what any method does that is asked of the wrong address. It
// never succeeds.
var misplacedOperation = &operation{"Misplaced", sharedkey.Query, false, (*exchange).misplaced}

// asked is the action of operations that ask for permission themselves, once they
// know for what.
const asked sharedkey.Action = 0xff

// methodMerge is the service's own name for PATCH.
const methodMerge = "MERGE"

// notAllowed refuses a method for which the resource has no operation.
func notAllowed(asked route) *problem.Problem {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, methodMerge, http.MethodDelete} {
		for r := range routes {
			if r == (route{asked.kind, m, asked.comp}) {
				methods = append(methods, m)
				break
			}
		}
	}
	return problem.MethodNotAllowed(methods)
}
