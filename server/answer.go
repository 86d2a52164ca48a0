package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// maxClientIDBytes is how long an id may be that a client gives a request.
const maxClientIDBytes = 1024

// clientRequestID returns the id that the client gave the request, "" if it gave
// none or one that cannot stand in a header.
func (x *exchange) clientRequestID() string {
	given := x.r.Header["X-Ms-Client-Request-Id"]
	if len(given) != 1 || len(given[0]) > maxClientIDBytes {
		return ""
	}
	for _, c := range []byte(given[0]) {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return given[0]
}

const (
	serverName         = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
	frontEndName       = "Microsoft-HTTPAPI/2.0"
	applicationJSON    = "application/json"
	applicationXML     = "application/xml"
	applicationXMLUTF8 = "application/xml;charset=utf-8"
	byteOrderMark      = "\ufeff"
)

// maxFields is how many headers answers have, but for few.
const maxFields = 12

// set sets a header whose name is in canonical form. The values of an answer
// share one slice; one for each is a fifth of all that a read allocates.
func (x *exchange) set(name, value string) {
	if len(x.values) == cap(x.values) {
		x.values = make([]string, 0, maxFields)
	}
	x.values = append(x.values, value)
	n := len(x.values)
	x.w.Header()[name] = x.values[n-1 : n : n]
}

// head sets the headers of every answer that the Table layer gives.
func (x *exchange) head() {
	x.set("Server", serverName)
	x.set("X-Ms-Request-Id", x.id)
	x.set("X-Ms-Version", x.version)
	if id := x.clientRequestID(); id != "" {
		x.set("X-Ms-Client-Request-Id", id)
	}
}

// headOData sets the headers of every success of an OData operation.
func (x *exchange) headOData() {
	x.head()
	x.set("Cache-Control", "no-cache")
	x.set("X-Content-Type-Options", "nosniff")
}

// send writes x.chunks and x.buf as the answer.
func (x *exchange) send(status int, contentType string) error {
	x.freeParser() // the answer says all that there is to say of what was read
	x.status = status
	if contentType != "" {
		x.set("Content-Type", contentType)
	}
	x.set("Content-Length", strconv.Itoa(x.chunks.bytes+len(x.buf)))
	x.allowOrigin()
	x.w.WriteHeader(status)
	for i, b := range x.chunks.full {
		if _, err := x.w.Write(b); err != nil {
			return x.gone(err)
		}
		// What is sent is free for others: a client that reads slowly holds what it
		// has not read.
		x.chunks.free(i)
		sent := min(x.paged, chunkBytes)
		x.paged -= sent
		x.s.inFlight.release(sent)
	}
	_, err := x.w.Write(x.buf)
	return x.gone(err)
}

// sendEmpty answers without a body.
func (x *exchange) sendEmpty(status int) error {
	x.status = status
	x.set("Content-Length", "0")
	x.allowOrigin()
	x.w.WriteHeader(status)
	return nil
}

// gone takes note of a client that does not wait for its answer. There is
// nobody left to tell.
func (x *exchange) gone(err error) error {
	if x.err == nil {
		x.err = err
	}
	return nil
}

// preferenceApplied says which preference of an insert was followed.
func (x *exchange) preferenceApplied() {
	if x.prefer != request.NoPreference {
		x.set("Preference-Applied", x.prefer.String())
	}
}

// invalidURLPage is what the service's front end says to a path that it does not
// let through.
const invalidURLPage = `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN""http://www.w3.org/TR/html4/strict.dtd">` + "\r\n" +
	`<HTML><HEAD><TITLE>Bad Request</TITLE></HEAD><BODY><h2>Bad Request - Invalid URL</h2><hr><p>HTTP Error 400. The request URL is invalid.</p></BODY></HTML>` + "\r\n"

// fail answers with a problem.
func (x *exchange) fail(p *problem.Problem) {
	x.code, x.err = p.Code, p.Cause
	if p.Status >= http.StatusInternalServerError && x.err == nil && p != problem.ErrNotImplemented {
		x.err = p
	}
	if x.version == "" {
		x.version = newestVersion
	}
	x.chunks.reset()
	x.buf = reusable(x.buf)
	if p.Page {
		x.set("Server", frontEndName)
		x.set("Connection", "close")
		x.buf = append(x.buf, invalidURLPage...)
		_ = x.send(p.Status, "text/html; charset=us-ascii")
		return
	}
	xml := x.inXML(p)
	x.failHead(p, xml)
	switch {
	case xml:
		x.buf = odata.AppendErrorXML(x.buf, "m:", p.Code, p.Message, x.id, x.s.now())
		_ = x.send(p.Status, applicationXML)
	case p == problem.ErrAtom:
		x.buf = odata.AppendErrorXML(x.buf, "", p.Code, p.Message, x.id, x.s.now())
		_ = x.send(p.Status, applicationXMLUTF8)
	default:
		level, err := request.LevelOf(x.query.Get("$format"), x.r.Header["Accept"])
		if err != nil {
			level = odata.Minimal
		}
		kind := request.ContentType(level)
		if p.Front {
			kind = applicationJSON
		}
		x.buf = odata.AppendError(x.buf, p.Code, p.Message, x.id, x.s.now())
		_ = x.send(p.Status, kind)
	}
}

// inXML reports whether a problem is stated in XML: so are those of resources that
// speak it, and refusals of clients who do not say that they read JSON.
func (x *exchange) inXML(p *problem.Problem) bool {
	switch {
	case x.operation != nil:
		return x.operation.xml
	case p.Refusal:
		return !request.WantsJSON(x.r.Header["Accept"])
	}
	return x.target.Kind == request.TableACL || x.target.Kind == request.ServiceRoot && x.query.Get("restype") == "service"
}

// failHead sets the headers of a problem.
func (x *exchange) failHead(p *problem.Problem, xml bool) {
	switch {
	case p.Bare:
		x.set("Server", frontEndName)
	case p.Front:
		x.set("Server", frontEndName)
		x.set("X-Ms-Request-Id", x.id)
	default:
		x.head()
	}
	if xml || p.Front {
		x.set("X-Ms-Error-Code", p.Code)
	} else {
		x.set("X-Content-Type-Options", "nosniff")
		if !p.Early {
			x.set("Cache-Control", "no-cache")
		}
	}
	if !p.Early {
		x.preferenceApplied()
	}
	for name, value := range map[string]string{"Www-Authenticate": p.Challenge, "Allow": p.Allow, "Retry-After": p.Retry} {
		if value != "" {
			x.set(name, value)
		}
	}
}

// event tells what became of the request.
func (x *exchange) event() Event {
	e := Event{
		Method: x.r.Method,
		Status: x.status, Code: x.code, Duration: x.s.now().Sub(x.start),
		Examined: x.examined, Returned: x.returned,
		RequestID: x.id, ClientRequestID: x.clientRequestID(), Err: x.err,
	}
	if sharedkey.IsAccountName(x.Address.Account) {
		e.Account = x.Address.Account
	}
	if edm.CheckTableName(x.target.Table) == nil {
		e.Table = x.target.Table
	}
	if x.operation != nil {
		e.Operation = x.operation.name
	}
	if x.did != "" {
		e.Operation = x.did
	}
	if errors.Is(x.err, context.Canceled) {
		e.Status, e.Code = StatusClientGone, ""
	}
	return e
}
