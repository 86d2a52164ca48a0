package server

import (
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// resource is what a path names.
type resource uint8

const (
	serviceRoot resource = iota + 1 // /
	schema                          // /$metadata
	batch                           // /$batch
	tables                          // /Tables, /Tables()
	table                           // /Tables('T')
	entities                        // /T, /T()
	entity                          // /T(PartitionKey='a',RowKey='b')
	tableACL                        // /T?comp=acl
)

// target is the resource that a path names, with its table and key.
type target struct {
	kind  resource
	table string
	key   edm.Key
}

// operation is one row of the table of routes.
type operation struct {
	name   string
	action sharedkey.Action
	xml    bool // speaks XML, not OData
	run    func(*exchange) error
}

// route is a method on a resource; comp is the query parameter of that name.
type route struct {
	kind   resource
	method string
	comp   string
}

// routes is every operation of the service. A method that stands here for no
// resource of the kind is refused as not allowed.
var routes = map[route]*operation{
	{serviceRoot, http.MethodGet, "properties"}: {"GetServiceProperties", sharedkey.ReadProperties, true, (*exchange).serviceProperties},
	{serviceRoot, http.MethodPut, "properties"}: {"SetServiceProperties", sharedkey.WriteProperties, true, (*exchange).setServiceProperties},
	{serviceRoot, http.MethodGet, "stats"}:      {"GetServiceStats", sharedkey.ReadStats, true, (*exchange).serviceStats},
	{tables, http.MethodGet, ""}:                {"QueryTables", sharedkey.ListTables, false, (*exchange).queryTables},
	{tables, http.MethodPost, ""}:               {"CreateTable", sharedkey.CreateTable, false, (*exchange).createTable},
	{table, http.MethodGet, ""}:                 {"GetTable", sharedkey.ListTables, false, (*exchange).getTable},
	{table, http.MethodDelete, ""}:              {"DeleteTable", sharedkey.DeleteTable, false, (*exchange).deleteTable},
	{tableACL, http.MethodGet, "acl"}:           {"GetTableACL", sharedkey.ACL, true, (*exchange).tableACL},
	{tableACL, http.MethodPut, "acl"}:           {"SetTableACL", sharedkey.ACL, true, (*exchange).setTableACL},
	{entities, http.MethodGet, ""}:              {"QueryEntities", sharedkey.Query, false, (*exchange).queryEntities},
	{entities, http.MethodPost, ""}:             {"InsertEntity", asked, false, (*exchange).write},
	{entity, http.MethodGet, ""}:                {"GetEntity", sharedkey.Query, false, (*exchange).getEntity},
	{entity, http.MethodPut, ""}:                {"ReplaceEntity", asked, false, (*exchange).write},
	{entity, http.MethodPatch, ""}:              {"MergeEntity", asked, false, (*exchange).write},
	{entity, methodMerge, ""}:                   {"MergeEntity", asked, false, (*exchange).write},
	{entity, http.MethodDelete, ""}:             {"DeleteEntity", asked, false, (*exchange).write},
	{batch, http.MethodPost, ""}:                {"Batch", asked, false, (*exchange).batch},
}

// asked is the action of operations that ask for permission themselves, once they
// know for what.
const asked sharedkey.Action = 0xff

// methodMerge is the service's own name for PATCH.
const methodMerge = "MERGE"

const secondarySuffix = "-secondary"

// address is where a request goes: an account, by host or by the first segment
// of the path, and the rest of the path.
type address struct {
	account   string
	secondary bool
	hostStyle bool
	rest      string // decoded, without the slash before it
}

// addressOf finds the account that host or path names. Only a host such as
// ACCOUNT.table.localhost names one; to any other host, the first segment does.
func addressOf(host, path string) address {
	a := address{rest: strings.TrimPrefix(path, "/")}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if label, rest, ok := strings.Cut(host, "."); ok && hasTableLabel(rest) {
		a.account, a.hostStyle = strings.ToLower(label), true
	} else {
		a.account, a.rest, _ = strings.Cut(a.rest, "/")
	}
	a.account, a.secondary = strings.CutSuffix(a.account, secondarySuffix)
	return a
}

// hasTableLabel reports whether rest, a host's labels after the first, begins
// with the one that tells the Table service from its siblings.
func hasTableLabel(rest string) bool {
	return len(rest) > len("table.") && strings.EqualFold(rest[:len("table.")], "table.")
}

// errURI says that a path names nothing that the service has.
var errURI = &problem{status: http.StatusBadRequest, code: "InvalidUri", message: "The requested URI does not represent any resource on the server."}

// errURLSyntax says that what stands in parentheses is no key.
var errURLSyntax = &problem{status: http.StatusBadRequest, code: codeInvalidInput, message: "Bad Request - Error in query syntax.", early: true}

// parseTarget reads what follows the account in a decoded path.
func parseTarget(rest, comp string) (target, error) {
	if !utf8.ValidString(rest) {
		return target{}, errURLSyntax
	}
	rest = strings.TrimSuffix(rest, "/")
	name, predicate, called := strings.Cut(rest, "(")
	switch {
	case rest == "":
		return target{kind: serviceRoot}, nil
	case rest == "$batch":
		return target{kind: batch}, nil
	case rest == "$metadata":
		return target{kind: schema}, nil
	case strings.Contains(name, "/"):
		return target{}, errURI
	case comp == "acl" && !called:
		return target{kind: tableACL, table: name}, nil
	case name == "Tables":
		return parseTablesTarget(predicate, called)
	case !called || predicate == ")":
		return target{kind: entities, table: name}, nil
	}
	key, ok := parseKey(predicate)
	if !ok {
		return target{}, errURLSyntax
	}
	return target{entity, name, key}, nil
}

// parseTablesTarget reads what follows "Tables(".
func parseTablesTarget(predicate string, called bool) (target, error) {
	if !called || predicate == ")" {
		return target{kind: tables}, nil
	}
	name, rest, ok := cutQuoted(predicate)
	if !ok || rest != ")" {
		return target{}, errURLSyntax
	}
	return target{kind: table, table: name}, nil
}

// parseKey reads PartitionKey='..',RowKey='..') in either order.
func parseKey(s string) (key edm.Key, ok bool) {
	var seen [2]bool
	for i := range 2 {
		s = strings.TrimLeft(s, " ")
		var which int
		switch {
		case strings.HasPrefix(s, "PartitionKey="):
			s = s[len("PartitionKey="):]
		case strings.HasPrefix(s, "RowKey="):
			which, s = 1, s[len("RowKey="):]
		default:
			return key, false
		}
		text, rest, quoted := cutQuoted(s)
		if !quoted || seen[which] || len(rest) == 0 || rest[0] != ",)"[i] {
			return key, false
		}
		seen[which], s = true, rest[1:]
		if which == 0 {
			key.Partition = text
		} else {
			key.Row = text
		}
	}
	return key, s == ""
}

// cutQuoted reads a string in single quotes, in which a quote stands twice.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '\'' {
		return "", s, false
	}
	s = s[1:]
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '\'')
		if i < 0 {
			return "", s, false
		}
		at += i
		if at+1 < len(s) && s[at+1] == '\'' {
			at += 2
			continue
		}
		return strings.ReplaceAll(s[:at], "''", "'"), s[at+1:], true
	}
}
