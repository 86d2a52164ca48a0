package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

const (
	serverName         = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
	frontEndName       = "Microsoft-HTTPAPI/2.0"
	applicationJSON    = "application/json"
	applicationXML     = "application/xml"
	applicationXMLUTF8 = "application/xml;charset=utf-8"
	byteOrderMark      = "\ufeff"
)

// maxFields is the number of headers of nearly all responses.
const maxFields = 12

// set sets a header, whose name must be in canonical form. The values of a response
// share one slice: a slice for each is a fifth of the allocations of a read.
func (x *exchange) set(name, value string) {
	if len(x.values) == cap(x.values) {
		x.values = make([]string, 0, maxFields)
	}
	x.values = append(x.values, value)
	n := len(x.values)
	x.w.Header()[name] = x.values[n-1 : n : n]
}

// setHead sets the headers of every response of the Table layer.
func (x *exchange) setHead() {
	x.set("Server", serverName)
	x.set("X-Ms-Request-Id", x.id)
	x.set("X-Ms-Version", x.version)
	if id := clientRequestID(x.r.Header); id != "" {
		x.set("X-Ms-Client-Request-Id", id)
	}
}

// setODataHead sets the headers of every success of an OData operation.
func (x *exchange) setODataHead() {
	x.setHead()
	x.set("Cache-Control", "no-cache")
	x.set("X-Content-Type-Options", "nosniff")
}

// send sends x.out as the response.
func (x *exchange) send(status int, contentType string) error {
	x.freeParser() // nothing of the entity is needed any more
	x.event.Status = status
	if contentType != "" {
		x.set("Content-Type", contentType)
	}
	x.set("Content-Length", strconv.Itoa(x.out.Len()))
	x.allowOrigin()
	x.w.WriteHeader(status)
	// The client is gone if this fails, and cannot be sent a failure.
	if err := x.out.Send(x.w); err != nil && x.event.Err == nil {
		x.event.Err = err
	}
	return nil
}

// sendEmpty sends a response without a body.
func (x *exchange) sendEmpty(status int) error {
	x.event.Status = status
	x.set("Content-Length", "0")
	x.allowOrigin()
	x.w.WriteHeader(status)
	return nil
}

// setPreferenceApplied states which preference of an insert was honored.
func (x *exchange) setPreferenceApplied() {
	if x.prefer != request.NoPreference {
		x.set("Preference-Applied", x.prefer.String())
	}
}

// invalidURLPage is the response of the service's front end to a path with control
// characters.
const invalidURLPage = `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN""http://www.w3.org/TR/html4/strict.dtd">` + "\r\n" +
	`<HTML><HEAD><TITLE>Bad Request</TITLE></HEAD><BODY><h2>Bad Request - Invalid URL</h2><hr><p>HTTP Error 400. The request URL is invalid.</p></BODY>` +
	`</HTML>` + "\r\n"

// fail sends a problem as the response.
func (x *exchange) fail(p *problem.Problem) {
	x.event.Code, x.event.Err, x.event.Returned = p.Code, p.Cause, 0
	if p.Status >= http.StatusInternalServerError && p.Cause == nil && p != problem.ErrNotImplemented {
		x.event.Err = p
	}
	if x.version == "" {
		x.version = newestVersion
	}
	x.out.Clear()
	if p.Page {
		x.set("Server", frontEndName)
		x.set("Connection", "close")
		x.out.Buf = append(x.out.Buf, invalidURLPage...)
		_ = x.send(p.Status, "text/html; charset=us-ascii")
		return
	}
	if p == problem.ErrVersion {
		x.sendErrorXML(p, `<?xml version="1.0" encoding="utf-8" standalone="yes"?>`, "", applicationXML)
		return
	}
	form := x.formOf(p)
	x.setFailHead(p, form)
	switch form {
	case prefixedXML:
		x.sendErrorXML(p, xmlDeclaration, "m:", applicationXML)
	case plainXML:
		x.sendErrorXML(p, xmlDeclaration, "", applicationXMLUTF8)
	case errorJSON:
		level, err := request.LevelOf(x.query.Get("$format"), x.r.Header["Accept"])
		if err != nil {
			level = odata.Minimal
		}
		kind := request.ContentType(level)
		if p.Front {
			kind = applicationJSON
		}
		x.out.Buf = odata.AppendError(x.out.Buf, p.Code, p.Message, x.id, x.s.now())
		_ = x.send(p.Status, kind)
	}
}

const xmlDeclaration = `<?xml version="1.0" encoding="utf-8"?>`

// sendErrorXML sends a problem as an XML document whose elements have the given prefix.
func (x *exchange) sendErrorXML(p *problem.Problem, declaration, prefix, contentType string) {
	x.out.Buf = odata.AppendErrorXML(append(x.out.Buf, declaration...), prefix, p.Code, p.Message, x.id, x.s.now())
	_ = x.send(p.Status, contentType)
}

// errorForm is the form of the document of a problem.
type errorForm uint8

const (
	errorJSON   errorForm = iota
	prefixedXML           // with the prefix m, and with the code in a header
	plainXML              // without a prefix
)

// formOf returns the form of a problem. It is prefixed XML for operations and resources with
// documents in XML, and for refusals of the credentials if Accept does not have JSON. It is
// plain XML for refused writes if the request does not ask for JSON.
func (x *exchange) formOf(p *problem.Problem) errorForm {
	wantsJSON := request.WantsJSON(x.r.Header["Accept"])
	switch {
	case x.operation != nil && x.operation.xml, x.operation == nil && p.Refusal && !wantsJSON:
		return prefixedXML
	case x.operation == nil && !p.Refusal && (x.target.Kind == request.TableACL || x.target.Kind == request.ServiceRoot && x.query.Get("restype") == "service"):
		return prefixedXML
	case p == problem.ErrAtom, x.isWrite() && !wantsJSON && x.query.Get("$format") == "":
		return plainXML
	}
	return errorJSON
}

// isWrite reports whether the request is for a write of a table or an entity. A batch is
// none: its operations have forms of their own.
func (x *exchange) isWrite() bool {
	switch x.target.Kind {
	case request.Tables, request.Table, request.Entities, request.Entity, request.Misplaced:
		return x.r.Method == http.MethodPost || slices.Contains(tunnelled, x.r.Method)
	case request.ServiceRoot, request.Schema, request.Batch, request.TableACL:
	}
	return false
}

// versionErrorCode is the first version with the code of an error in a header.
const versionErrorCode = "2017-07-29"

// setFailHead sets the headers of a problem.
func (x *exchange) setFailHead(p *problem.Problem, form errorForm) {
	switch {
	case p.Bare:
		x.set("Server", frontEndName)
	case p.Front && !p.Full:
		x.set("Server", frontEndName)
		x.set("X-Ms-Request-Id", x.id)
	default:
		x.setHead()
	}
	if form == prefixedXML || p.Front {
		if !p.Full || x.version >= versionErrorCode {
			x.set("X-Ms-Error-Code", p.Code)
		}
	} else {
		x.set("X-Content-Type-Options", "nosniff")
		if !p.Early {
			x.set("Cache-Control", "no-cache")
		}
	}
	if p == problem.ErrBodyTooLarge { // the legacy Java client takes the code of a batch from here
		x.set("X-Ms-Error-Code", p.Code)
	}
	if !p.Early {
		x.setPreferenceApplied()
	}
	for name, value := range map[string]string{"Www-Authenticate": p.Challenge, "Allow": p.Allow, "Retry-After": p.Retry} {
		if value != "" {
			x.set(name, value)
		}
	}
}

// tableName returns the name of the table, "" if there is no valid one: clients may put
// keys there by mistake.
func (x *exchange) tableName() string {
	if edm.CheckTableName(x.target.Table) != nil {
		return ""
	}
	return x.target.Table
}

// finishEvent completes the event of the request.
func (x *exchange) finishEvent() {
	e := &x.event
	e.Context = x.r.Context()
	e.Method, e.Duration = x.r.Method, x.s.now().Sub(x.start)
	e.RequestID, e.ClientRequestID = x.id, clientRequestID(x.r.Header)
	if sharedkey.IsAccountName(x.Address.Account) {
		e.Account = x.Address.Account
	}
	e.Table = x.tableName()
	if x.operation != nil {
		e.Operation = nameOf(x.operation, &x.command, x.r.Header["If-Match"])
	}
	if x.left != nil && e.Err == nil {
		e.Err = x.left
	}
	if x.left != nil || errors.Is(e.Err, context.Canceled) {
		e.Status, e.Code = statusClientGone, ""
	}
}
