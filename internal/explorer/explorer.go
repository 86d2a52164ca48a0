package explorer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/jobs"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/sessions"
	"github.com/tablerock-db/tablerock/internal/livestate"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/tempfile"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/internal/webguard"
	"github.com/tablerock-db/tablerock/store"
)

// Root is the path of all pages.
const Root = "/ui/"

// Options configure a Handler. Functions may be called concurrently.
type Options struct {
	// Accounts returns the accounts. It is called for each request.
	Accounts func() []Account
	// Problem returns the status, the code and the message of an error in the protocol.
	Problem func(error) (status int, code, message string)
	// IsHost reports whether a Host header may have a name, in lower case. Addresses and
	// localhost are allowed without it; nil allows nothing else.
	IsHost func(name string) bool
	// Cookie is the name of the session's cookie. Servers on one host need different ones,
	// because a cookie is sent to all ports.
	Cookie string
	// Secure says that browsers connect by TLS.
	Secure bool
	// Requests returns the counts of requests, the last ones, newest first and at most that
	// many, and the shapes of slow queries, the most expensive first.
	Requests func(last int) (livestate.Requests, []livestate.Request, []livestate.Shape)
	// Sums returns counters of all engines, by the names of Engine.Figures, for the history.
	// It must be cheap. It may be nil, like Requests, Cache and Pool.
	Sums func() map[string]float64
	// Cache returns the state of the block cache that all engines share.
	Cache func() *livestate.Cache
	// Pool returns the state of the connections of a backend as JSON.
	Pool    func() json.RawMessage
	Version string
	Log     *slog.Logger
	Now     func() time.Time
}

// Account is an account whose data is shown. Only Name and Store are needed.
type Account struct {
	Name  string
	Where string // the directory or the URL, for people
	Store store.Store
	// ReadOnly says that Store refuses writes.
	ReadOnly bool
	// Keys verify a login by key or shared access signature; without them there is none.
	Keys *sharedkey.Keys
	// Credential makes shared access signatures.
	Credential *sharedkey.Credential
	// Endpoint is the URL of the account's tables for clients, "" if there is none.
	Endpoint string
	// Stats returns the figures of all tables.
	Stats func(context.Context) ([]store.TableStats, error)
	// Snapshot returns a source that does not change, and a function that releases it.
	Snapshot func() (transfer.Querier, func(), error)
	// Load imports faster than transactions.
	Load transfer.LoadFunc
	// Clear deletes the entities of a table and calls progress with their number.
	Clear func(ctx context.Context, table string, progress func(rows int64)) error
	// TransactionBytes limits the transactions of an import; 0 is the default of package
	// transfer.
	TransactionBytes int64
	// Engine returns the state of the engine.
	Engine func() (livestate.Engine, error)
	// Policies and SetPolicies read and replace the access policies of a table.
	Policies    func(ctx context.Context, table string) ([]Policy, error)
	SetPolicies func(ctx context.Context, table string, policies []Policy) error
}

// Handler serves the pages of Root. It is safe for concurrent use.
type Handler struct {
	o        Options
	mux      *http.ServeMux
	pages    *pages
	sessions *sessions.Set
	failures *webguard.Failures
	jobs     *jobs.Set
	files    *tempfile.Files
	live     *live
	verifier sharedkey.Verifier
	guard    *webguard.Guard
}

// New returns a Handler. Close it.
func New(o Options) (*Handler, error) {
	p, err := loadPages(o.Version)
	if err != nil {
		return nil, err
	}
	h := &Handler{o: o, mux: http.NewServeMux(), pages: p, guard: webguard.New(o.Secure, Root+"api/", o.IsHost)}
	h.sessions = sessions.New(o.Now)
	h.failures = webguard.NewFailures(o.Now)
	h.files = tempfile.New(maxFileBytes)
	h.jobs = jobs.New(o.Now, func(err error) any {
		_, f := h.failureOf(err)
		return f
	})
	h.live = newLive(h)
	h.verifier = sharedkey.Verifier{Keys: h.keysOf, Policies: h.signaturePolicies, Now: o.Now}
	h.routes()
	return h, nil
}

// Close ends all sessions, jobs and streams, and waits for the jobs.
func (h *Handler) Close() {
	h.sessions.Close()
	h.live.close()
	h.jobs.Close()
}

// LoginPath returns the path and fragment of a link that logs in as the owner, who may do
// everything. It works once, within ten minutes. Print it on a terminal only.
func (h *Handler) LoginPath() string { return Root + "login#once=" + h.sessions.NewLink() }

// ServeHTTP serves a request of Root.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	webguard.SetHeaders(w.Header())
	if err := h.guard.Check(r); err != nil {
		h.fail(w, r, Refuse(http.StatusForbidden, "OtherOrigin", err.Error()))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// exchange is a request to the API, with its session.
type exchange struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request
	s *session // nil before a login
}

const csrfHeader = "X-Csrf-Token"

// answered is the result of a handler that wrote the response.
type answered struct{}

// route adds a handler of the API. The value that it returns is the body of the response.
func (h *Handler) route(pattern string, open bool, serve func(*exchange) (any, error)) {
	method, path, _ := strings.Cut(pattern, " ")
	h.mux.HandleFunc(method+" "+Root+"api/"+path, func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{h: h, w: w, r: r, s: h.sessionOf(r)}
		if err := x.admit(open); err != nil {
			h.fail(w, r, err)
			return
		}
		v, err := serve(x)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		if _, done := v.(answered); !done {
			send(w, r, http.StatusOK, v)
		}
	})
}

var errNoSession = Refuse(http.StatusUnauthorized, "NoSession", "Log in first.")

// admit checks the session, the token and the query of a request.
func (x *exchange) admit(open bool) error {
	if open {
		return nil
	}
	if x.s == nil {
		return errNoSession
	}
	if x.r.Method != http.MethodGet && !webguard.Equal(x.r.Header.Get(csrfHeader), x.s.CSRF) {
		return Refuse(http.StatusForbidden, "NoCsrfToken", "The request has no valid "+csrfHeader+".")
	}
	if _, err := url.ParseQuery(x.r.URL.RawQuery); err != nil { // URL.Query would leave parameters out, such as the filter
		return badInput("The query of the URL is not valid.")
	}
	return nil
}

// routes adds all paths; doc.go describes them.
func (h *Handler) routes() {
	h.mux.HandleFunc("GET "+Root+"{$}", h.servePage)
	h.mux.HandleFunc("GET "+Root+"{page}", h.servePage)
	h.mux.HandleFunc("GET "+Root+"assets/{tag}/{file...}", h.pages.serveAsset)
	h.mux.HandleFunc(Root, func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, Refuse(http.StatusNotFound, "NotFound", "There is no such page."))
	})
	h.route("POST login", true, (*exchange).login)
	h.route("POST logout", false, (*exchange).logout)
	h.route("GET session", false, (*exchange).session)
	h.route("GET accounts", false, (*exchange).accounts)
	h.route("GET tables", false, (*exchange).tables)
	h.route("POST tables/create", false, (*exchange).createTable)
	h.route("POST tables/delete", false, (*exchange).deleteTable)
	h.route("POST tables/clear", false, (*exchange).clearTable)
	h.route("GET entities", false, (*exchange).entities)
	h.route("GET count", false, (*exchange).count)
	h.route("GET entity", false, (*exchange).entity)
	h.route("POST entity", false, (*exchange).writeEntity)
	h.route("POST batch", false, (*exchange).writeBatch)
	h.route("POST filter", false, (*exchange).filter)
	h.route("GET explain", false, (*exchange).explain)
	h.route("GET jobs", false, (*exchange).listJobs)
	h.route("GET job", false, (*exchange).job)
	h.route("POST job/cancel", false, (*exchange).cancelJob)
	h.route("POST export", false, (*exchange).startExport)
	h.route("GET export/file", false, (*exchange).exportFile)
	h.route("POST import", false, (*exchange).startImport)
	h.route("POST import/data", false, (*exchange).importData)
	h.route("GET acl", false, (*exchange).policies)
	h.route("POST acl", false, (*exchange).setPolicies)
	h.route("GET sas/fields", false, (*exchange).sasFields)
	h.route("POST sas", false, (*exchange).makeSAS)
	h.route("GET live", false, (*exchange).liveState)
	h.route("GET events", false, (*exchange).events)
}

// account returns the account of a name, if the session may see it.
func (x *exchange) account(name string) (*Account, error) {
	if x.s.Account == "" || x.s.Account == name {
		if a := x.h.accountOf(name); a != nil {
			return a, nil
		}
	}
	return nil, Refuse(http.StatusNotFound, "AccountNotFound", "There is no account of this name.")
}

func (h *Handler) accountOf(name string) *Account {
	list := h.o.Accounts()
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// allow returns an error unless the session may do an action on a table.
func (x *exchange) allow(a sharedkey.Action, table string) error {
	if x.s.Account == "" {
		return nil
	}
	return x.s.Grant.Allow(a, table)
}

// target returns the account and the table of a query, if the session may do an action on
// them.
func (x *exchange) target(a sharedkey.Action) (*Account, string, error) {
	q := x.r.URL.Query()
	return x.targetOf(q.Get("a"), q.Get("t"), a)
}

func (x *exchange) targetOf(account, table string, a sharedkey.Action) (*Account, string, error) {
	of, err := x.account(account)
	if err != nil {
		return nil, "", err
	}
	if err := edm.CheckTableName(table); err != nil {
		return nil, "", err
	}
	return of, table, x.allow(a, table)
}

// keysOf returns the keys of an account, nil if there is none.
func (h *Handler) keysOf(account string) *sharedkey.Keys {
	if a := h.accountOf(account); a != nil {
		return a.Keys
	}
	return nil
}

// signaturePolicies returns the policies that a shared access signature can name.
func (h *Handler) signaturePolicies(ctx context.Context, account, table string) ([]sharedkey.Policy, error) {
	a := h.accountOf(account)
	if a == nil || a.Policies == nil {
		return nil, store.ErrTableNotFound
	}
	stored, err := a.Policies(ctx, table)
	if errors.Is(err, store.ErrInvalid) {
		err = store.ErrTableNotFound
	}
	list := make([]sharedkey.Policy, len(stored))
	for i, p := range stored {
		list[i] = sharedkey.Policy(p)
	}
	return list, err
}
