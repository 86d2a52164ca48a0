package server

import (
	"bufio"
	"context"
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
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// exchange is one request on its way to its answer. It is used by one goroutine
// and, with its buffers, used again for later requests.
type exchange struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	cancel context.CancelFunc // of r's context, nil unless the client limits its time
	start  time.Time
	id     string // of the request, a GUID

	request.Address
	account   *account // nil if there is none of the name
	base      joined   // what links begin with: scheme, host and account
	query     url.Values
	target    request.Target
	operation *operation
	did       string // the write that it came to be, for events
	method    string // that of X-HTTP-Method if it was tunnelled
	version   string // of the protocol, echoed
	grant     sharedkey.Grant
	level     odata.Level
	prefer    request.Preference

	parser    *odata.Parser // borrowed, nil until an entity is to be read
	body      []byte        // of the request
	bodyOwner *[]byte       // where body came from, nil while there is none
	held      int64         // bytes of inFlight that the body holds
	paged     int64         // bytes of inFlight that the answer holds
	chunks    chunkList     // of the answer: what comes before buf
	buf       []byte        // of the answer
	bufOwner  *[]byte       // where buf came from, nil while there is none

	// What View is to do with an entity, so that none of it has to be made anew.
	viewed  func(edm.Row) error
	options odata.Options
	etag    edm.ETag

	about              joined        // the URL of the metadata that options have
	ids                *bufio.Reader // random bytes for GUIDs
	values             []string      // of headers, and net/http's once the answer is sent
	status             int
	code               string
	examined, returned int
	err                error
}

func newExchange(s *Server) *exchange {
	x := &exchange{s: s, ids: newIDs()}
	x.viewed = x.appendViewed
	return x
}

func (x *exchange) begin(w http.ResponseWriter, r *http.Request) {
	x.w, x.r, x.start = w, r, x.s.now()
	x.id = nextID(x.ids)
	x.newBuffer()
}

// newBuffer takes memory for the answer. No request has any while its body comes: that
// takes as long as the client likes.
func (x *exchange) newBuffer() { x.bufOwner, x.buf = getBuffer() }

// freeBuffer ends what newBuffer began, with the memory that buf has now.
func (x *exchange) freeBuffer() {
	putBuffer(x.bufOwner, x.buf)
	x.bufOwner, x.buf = nil, nil
}

// parsers are *odata.Parser. One that has read a great entity holds hundreds of
// kilobytes, and none is needed while a body comes or an answer goes, which takes as
// long as the client likes.
var parsers = sync.Pool{New: func() any { return new(odata.Parser) }}

// parseEntity reads an entity, which is valid until freeParser.
func (x *exchange) parseEntity(src []byte, o odata.ParseOptions) (edm.Entity, error) {
	if x.parser == nil {
		x.parser = parsers.Get().(*odata.Parser)
	}
	return x.parser.ParseEntity(src, o)
}

// freeParser ends what parseEntity began.
func (x *exchange) freeParser() {
	if x.parser != nil {
		x.parser.Reset()
		parsers.Put(x.parser)
		x.parser = nil
	}
}

// end lets go of everything that belongs to the request.
func (x *exchange) end() {
	if x.cancel != nil {
		x.cancel()
	}
	x.s.inFlight.release(x.held + x.paged)
	x.chunks.reset()
	x.freeBuffer()
	x.freeParser()
	x.freeBody()
	*x = exchange{
		s: x.s, chunks: x.chunks,
		viewed: x.viewed, base: x.base.kept(), about: x.about.kept(), ids: x.ids,
	}
}

// serve answers, whatever happens. A panic is a bug of this program: the client
// gets a failure, and the log the place.
func (x *exchange) serve() {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			err := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			if x.status == 0 {
				x.fail(problem.Internal(err))
			}
			x.err = err
		}
	}()
	if err := x.answer(); err != nil {
		x.fail(problem.Of(err))
	}
}

// answer takes the request through the checks in the service's order.
func (x *exchange) answer() error {
	located := x.locate()
	if x.Address.Account == "" {
		return problem.ErrURI
	}
	if x.r.Method == http.MethodOptions {
		return x.preflight()
	}
	if err := x.chooseVersion(); err != nil {
		return err
	}
	if err := x.authorise(); err != nil {
		return err
	}
	if located != nil {
		return located
	}
	if err := x.chooseOperation(); err != nil {
		return err
	}
	if err := x.negotiate(); err != nil {
		return err
	}
	if err := x.limitTime(); err != nil {
		return err
	}
	return x.operation.run(x)
}

// limitTime lets the request take no longer than the client wants.
func (x *exchange) limitTime() error {
	limit, err := request.Timeout(x.query)
	if err != nil || limit == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), limit)
	x.r, x.cancel = x.r.WithContext(ctx), cancel
	return nil
}

// locate finds account and resource. Its error is for later: who is not
// authorised learns nothing of it.
func (x *exchange) locate() error {
	path := x.r.URL.Path
	x.Address = request.AddressOf(x.r.Host, path)
	x.account = x.s.accounts[x.Address.Account]
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	host := x.r.Host
	if host == "" { // clients of HTTP/1.0 need not say where they are
		if at, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = at.String()
		}
	}
	if x.HostStyle {
		x.base.join(scheme, host)
	} else {
		// The account's segment as the client wrote it, suffix included.
		segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		x.base.join(scheme, host, "/", segment)
		// A slash in escapes ends the account's segment here, and for nobody else.
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
	x.target, err = request.ParseTarget(x.Rest, x.query.Get("comp"))
	return err
}

// newestVersion is the version of requests that name none.
const newestVersion = "2020-12-06"

// oldestVersion is the first that has JSON.
const oldestVersion = "2013-08-15"

// chooseVersion takes the version of the protocol from the request. One that is
// not known yet is as good as any, and one before JSON good for what speaks XML.
func (x *exchange) chooseVersion() error {
	x.version = newestVersion
	given := x.r.Header["X-Ms-Version"]
	if len(given) == 0 {
		given = x.query["api-version"]
	}
	switch {
	case len(given) == 0:
		if sv := x.query.Get("sv"); isVersion(sv) {
			x.version = sv
		}
	case len(given) > 1 || !isVersion(given[0]):
		return problem.ErrHeaderValue
	default:
		x.version = given[0]
	}
	return nil
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

// authorise learns who asks.
func (x *exchange) authorise() error {
	var remote netip.AddrPort
	if x.r.URL.RawQuery != "" { // what limits the addresses stands there
		remote, _ = netip.ParseAddrPort(x.r.RemoteAddr)
	}
	var err error
	x.grant, err = x.s.verifier.Verify(x.r.Context(), &sharedkey.Request{
		Method: x.r.Method, Path: rawPath(x.r), RawQuery: x.r.URL.RawQuery, Header: x.r.Header,
		Account: x.Address.Account, Secondary: x.Secondary,
		TLS: x.r.TLS != nil, Remote: remote.Addr().Unmap(),
	})
	return err
}

// rawPath is the path as it stands on the request line, which is what is signed.
func rawPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath()
}

// tunnelled are the methods that a POST may carry in X-HTTP-Method.
var tunnelled = []string{http.MethodPut, methodMerge, http.MethodPatch, http.MethodDelete}

// tunnel returns the method that a request means.
func tunnel(method string, override []string) (string, error) {
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

// chooseOperation finds the operation that method and resource name, and asks
// whether the client may use it.
func (x *exchange) chooseOperation() error {
	var err error
	if x.method, err = tunnel(x.r.Method, x.r.Header["X-Http-Method"]); err != nil {
		return err
	}
	key := route{kind: x.target.Kind, method: x.method}
	switch x.target.Kind {
	case request.Schema:
		return problem.ErrNotImplemented
	case request.ServiceRoot:
		if x.query.Get("restype") != "service" {
			return problem.ErrURI
		}
		key.comp = x.query.Get("comp")
	case request.TableACL:
		key.comp = "acl"
	case request.Batch, request.Tables, request.Table, request.Entities, request.Entity, request.Misplaced:
		if comp := x.query.Get("comp"); comp == "properties" || comp == "stats" {
			return problem.ErrComp
		}
	}
	x.operation = routes[key]
	if x.target.Kind == request.Misplaced {
		x.operation = misplacedOperation
	}
	switch {
	case x.operation == nil && x.target.Kind == request.ServiceRoot && key.comp != "properties" && key.comp != "stats":
		return problem.ErrComp
	case x.operation == nil:
		return notAllowed(key)
	case x.Secondary && x.method != http.MethodGet:
		return problem.ErrSecondary
	case x.operation.action == asked:
		return nil
	}
	return x.grant.Allow(x.operation.action, x.target.Table)
}
