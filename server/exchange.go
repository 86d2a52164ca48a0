package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/memory"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// exchange is one request and its response. One goroutine uses it at a time. The
// server pools exchanges; end resets all of one but the field reused.
type exchange struct {
	reused
	w      http.ResponseWriter
	r      *http.Request
	cancel context.CancelFunc // of r's context, nil unless the client set a timeout
	start  time.Time
	id     string // of the request, a GUID

	request.Address
	accounts *accounts // at the beginning of the request
	account  *account  // nil if the server has no account of that name
	base     string    // the beginning of links: scheme, host and account
	command
	operation *operation
	version   string // of the protocol, repeated in the response
	grant     sharedkey.Grant

	parser *odata.Parser // from parserPool, nil until an entity is parsed

	// Arguments and result of appendViewed.
	options odata.Options
	etag    edm.ETag

	values []string // of headers; net/http reads them after the response is sent
	event  Event
	left   error // set if the client disconnected before its whole body was read
}

// reused is the memory that an exchange keeps from one request to the next.
type reused struct {
	s      *Server
	ids    *bufio.Reader       // random bytes for GUIDs
	viewed func(edm.Row) error // appendViewed, so that View needs no new closure
	body   memory.Body         // of the request, empty until readBody
	out    memory.Response     // closed while the body is read
}

// command is what a request, or one operation of a batch, asks for.
type command struct {
	method string // of X-HTTP-Method if the request has that header
	target request.Target
	query  url.Values
	level  odata.Level // of metadata in the response
	prefer request.Preference
}

func newExchange(s *Server) *exchange {
	x := &exchange{reused: reused{s: s, ids: newIDs(), body: memory.NewBody(&s.inFlight), out: memory.NewResponse(&s.inFlight)}}
	x.viewed = x.appendViewed
	return x
}

func (x *exchange) begin(w http.ResponseWriter, r *http.Request) {
	x.w, x.r, x.start = w, r, x.s.now()
	x.id = nextID(x.ids)
	x.out.Open()
}

// parserPool holds *odata.Parser. A parser of a large entity has hundreds of
// kilobytes, so an exchange has none while it reads a body or sends a response: the
// client decides how long that takes.
var parserPool = sync.Pool{New: func() any { return new(odata.Parser) }}

// parseEntity parses into e by Parser.ParseInto. The entity is valid until freeParser.
func (x *exchange) parseEntity(e *edm.Entity, src []byte, o odata.ParseOptions) error {
	if x.parser == nil {
		x.parser = parserPool.Get().(*odata.Parser)
	}
	return x.parser.ParseInto(e, src, o)
}

// freeParser returns the parser of parseEntity to the pool.
func (x *exchange) freeParser() {
	if x.parser != nil {
		x.parser.Reset()
		parserPool.Put(x.parser)
		x.parser = nil
	}
}

// end releases everything that belongs to the request.
func (x *exchange) end() {
	if x.cancel != nil {
		x.cancel()
	}
	x.out.Free()
	x.freeParser()
	x.body.Free()
	*x = exchange{reused: x.reused}
}

// serve always sends a response: that of handle, or its error. A panic is a bug of this program: the client gets an
// internal error, and the event has the stack.
func (x *exchange) serve(handle func(*exchange) error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			err := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			if x.event.Status == 0 {
				x.fail(problem.Internal(err))
			}
			x.event.Err = err
		}
	}()
	if err := handle(x); err != nil {
		x.fail(problem.Of(err))
	}
}

// handle checks the request, in the order of the service, and runs its operation.
func (x *exchange) handle() error {
	locateErr := x.locate()
	if x.isHealth() {
		return x.health()
	}
	if x.Address.Account == "" {
		return problem.ErrURI
	}
	if x.r.Method == http.MethodOptions {
		return x.preflight()
	}
	var err error
	if x.version, err = versionOf(x.r.Header, x.query); err != nil {
		return err
	}
	if err := x.authorize(); err != nil {
		return unsignedProblem(err, locateErr)
	}
	if locateErr != nil {
		return locateErr
	}
	if err := x.findOperation(); err != nil {
		return err
	}
	if err := x.negotiate(); err != nil {
		return err
	}
	if err := x.setTimeout(); err != nil {
		return err
	}
	return x.operation.run(x)
}

// setTimeout limits the time of the request to the timeout that the client gave.
func (x *exchange) setTimeout() error {
	limit, err := request.Timeout(x.query)
	if err != nil || limit == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), limit)
	x.r, x.cancel = x.r.WithContext(ctx), cancel
	return nil
}

// locate finds account and resource. Report its error only to an authorized client:
// others must not learn which resources exist.
func (x *exchange) locate() error {
	path := x.r.URL.Path
	x.Address = request.AddressOf(x.r.Host, path)
	x.accounts = x.s.accounts.Load()
	x.account = x.accounts.byName[x.Address.Account]
	scheme, host := originOf(x.r)
	if x.HostStyle {
		x.base = scheme + host
	} else {
		// The account's segment as the client wrote it, suffix included.
		segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		x.base = scheme + host + "/" + segment
		// An escaped slash would end the account's segment here, but not in the signature.
		if raw, _, _ := strings.Cut(strings.TrimPrefix(x.r.URL.RawPath, "/"), "/"); strings.Contains(strings.ToLower(raw), "%2f") {
			x.Address.Account = ""
		}
	}
	var err error
	if x.query, err = request.ParseQuery(x.r.URL.RawQuery); err != nil {
		return err
	}
	if request.HasControl(path) {
		return problem.ErrInvalidURL
	}
	x.target, err = request.ParseTarget(x.Rest, x.r.URL.RawPath, x.query.Get("comp"))
	return err
}

// originOf returns the scheme and the host of the server, as the client addressed it.
func originOf(r *http.Request) (scheme, host string) {
	scheme, host = "http://", r.Host
	if r.TLS != nil {
		scheme = "https://"
	}
	if host == "" { // clients of HTTP/1.0 may omit it
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = local.String()
		}
	}
	return scheme, host
}

// newestVersion is the version of requests without a version.
const newestVersion = "2020-12-06"

// oldestVersion is the first version with JSON.
const oldestVersion = "2013-08-15"

// versionOf returns the version of the protocol that a request names. Versions newer
// than newestVersion are accepted, and versions before oldestVersion for operations
// whose documents are XML.
func versionOf(header http.Header, query url.Values) (string, error) {
	given := header["X-Ms-Version"]
	if len(given) == 0 {
		given = query["api-version"]
	}
	switch {
	case len(given) == 0:
		if sv := query.Get("sv"); isVersion(sv) {
			return sv, nil
		}
		return newestVersion, nil
	case len(given) > 1 || !isVersion(given[0]):
		return newestVersion, problem.ErrVersion
	}
	return given[0], nil
}

func isVersion(s string) bool {
	if len(s) != len("2006-01-02") {
		return false
	}
	for i, c := range []byte(s) {
		if dash := i == 4 || i == 7; dash != (c == '-') || !dash && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// authorize verifies the credentials of the request.
func (x *exchange) authorize() error {
	var remote netip.AddrPort
	if x.r.URL.RawQuery != "" { // only a signature in the query can limit the addresses
		remote, _ = netip.ParseAddrPort(x.r.RemoteAddr)
	}
	var err error
	x.grant, err = x.accounts.verifier.Verify(x.r.Context(), &sharedkey.Request{
		Method: x.r.Method, Path: rawPath(x.r), RawQuery: x.r.URL.RawQuery, Header: x.r.Header,
		Account: x.Address.Account, Secondary: x.Secondary,
		TLS: x.r.TLS != nil, Remote: remote.Addr().Unmap(),
	})
	return err
}

// unsignedProblem returns err, a refusal of the credentials. If there are none and the
// path names no resource, the service says that instead.
func unsignedProblem(err, locateErr error) error {
	var refusal *sharedkey.Refusal
	if errors.As(err, &refusal) && refusal.Anonymous && (errors.Is(locateErr, request.ErrNoResource) || errors.Is(locateErr, request.ErrSyntax)) {
		return problem.ErrUnsignedPath
	}
	return err
}

// rawPath returns the path exactly as it is on the request line: clients sign that.
func rawPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath()
}

// tunnelled are the methods that a POST may carry in X-HTTP-Method.
var tunnelled = []string{http.MethodPut, methodMerge, http.MethodPatch, http.MethodDelete}

// effectiveMethod returns the method of a request whose X-HTTP-Method is override.
func effectiveMethod(method string, override []string) (string, error) {
	switch {
	case len(override) == 0:
		return method, nil
	case len(override) > 1:
		return "", problem.ErrManyXMethods
	case method != http.MethodPost:
		return "", problem.ErrXMethodNotPost
	case !slices.Contains(tunnelled, override[0]):
		return "", problem.ErrUnknownXMethod
	}
	return override[0], nil
}

// findOperation finds the operation of method and resource, and checks that the client
// may use it.
func (x *exchange) findOperation() error {
	var err error
	if x.method, err = effectiveMethod(x.r.Method, x.r.Header["X-Http-Method"]); err != nil {
		return err
	}
	if x.operation, err = operationOf(&x.command); err != nil {
		return err
	}
	switch {
	case x.Secondary && x.method != http.MethodGet && x.target.Kind != request.Batch: // batch refuses its own writes
		return problem.ErrSecondary
	case x.operation.checksAccess:
		return nil
	}
	return x.grant.Allow(x.operation.action, x.target.Table)
}
