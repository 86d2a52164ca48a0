package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/memory"
	"github.com/tablerock-db/tablerock/server/internal/metadata"
	"github.com/tablerock-db/tablerock/store"
)

// Options configure a Server.
type Options struct {
	// Accounts are the accounts of the server. Give at least one; names must be unique.
	Accounts []Account
	// OAuth accepts bearer tokens over TLS. The server checks their lifetime, issuer and
	// audience, but NOT their signature. The default is false, which refuses them.
	OAuth bool
	// Observe is called once for each request, after its response was written, by the
	// goroutine of that request. The default, nil, observes nothing.
	Observe func(Event)
	// RequestBytes is the most memory of the bodies and large responses of all requests, at least
	// 8 MiB. A request beyond gets 503 ServerBusy. The default is 64 MiB.
	RequestBytes int64
	// Now is the clock of the server, by which signatures expire. It is for tests; the
	// default is time.Now.
	Now func() time.Time
}

// Account is one storage account.
type Account struct {
	// Name is 3 to 24 lower-case letters and digits.
	Name string
	// Keys are one or two keys in base64. All are accepted, so that they can be rotated.
	Keys []string
	// WeakKeys accepts keys of fewer than 32 bytes, which can be guessed. The default,
	// false, refuses them.
	WeakKeys bool
	// Store has the account's tables. Other servers may use the same data: the server
	// reads access policies for each request that needs them, and service properties again
	// after at most 30 s. The server does not close it: close it after the last request.
	Store store.Store
}

// statusClientGone is never the status of a response.
const statusClientGone = 499

// Event describes a request and its outcome. It has no secrets. Some texts are chosen by
// clients: quote them.
type Event struct {
	Method          string // of the request line
	Operation       string // such as "InsertEntity"; "" if the request has no valid one
	Account, Table  string // "" if it is not a valid name: clients may put keys there by mistake
	Status          int    // of the response, or 499: the client disconnected before the request ended
	Code            string // the protocol's error code, "" without one
	Duration        time.Duration
	Examined        int          // rows that the store read, if it reports them
	Returned        int          // entities or tables in the response
	Filter          *filter.Expr // of a query of entities; it has data of the client
	RequestID       string
	ClientRequestID string
	Context         context.Context // of the request
	Err             error           // internal error of the request or of sending its response, or why credentials were refused; may be set with any Status
}

// Server is an http.Handler of the Azure Table protocol. Its methods may be called
// concurrently.
type Server struct {
	accounts atomic.Pointer[accounts]
	oauth    bool
	observe  func(Event)
	now      func() time.Time
	idle     sync.Pool // of *exchange
	inFlight memory.Budget

	mu sync.Mutex
	// properties has the caches of all accounts that the server ever had: a request
	// under way may still use that of an account that was removed.
	// +checklocks:mu
	properties map[string]*metadata.PropertyCache
}

// accounts are the accounts that a request can use. They do not change.
type accounts struct {
	byName   map[string]*account
	verifier sharedkey.Verifier
}

// account is an Account with its parsed keys.
type account struct {
	name       string
	keys       *sharedkey.Keys
	store      store.Store
	properties *metadata.PropertyCache
	// budgetBytes is the Query.BudgetBytes of a page: memory.MaxPageBytes for a store that reads
	// ahead. For others it is 0, because measuring rows takes 6 % of the CPU of a page, which
	// ends at memory.MaxPageBytes without it.
	budgetBytes int
}

// minRequestBytes is room for a body and the pages beside it.
const minRequestBytes = 8 << 20

// New returns a server for the accounts of o. Its error names the account or option that is
// not valid.
func New(o Options) (*Server, error) {
	if o.RequestBytes != 0 && o.RequestBytes < minRequestBytes {
		return nil, fmt.Errorf("server: RequestBytes is %d, must be at least %d", o.RequestBytes, minRequestBytes)
	}
	s := &Server{oauth: o.OAuth, observe: o.Observe, now: o.Now, properties: make(map[string]*metadata.PropertyCache)}
	s.inFlight.Limit = o.RequestBytes
	if s.now == nil {
		s.now = systemNow
	}
	s.idle.New = func() any { return newExchange(s) }
	if err := s.SetAccounts(o.Accounts); err != nil {
		return nil, err
	}
	return s, nil
}

// SetAccounts replaces the accounts, with at least one. Requests under way keep the
// accounts that they began with. If it returns an error, which names the account that is
// not valid, the accounts stay as they were.
func (s *Server) SetAccounts(list []Account) error {
	if len(list) == 0 {
		return errors.New("server: no account given")
	}
	next := &accounts{byName: make(map[string]*account, len(list))}
	next.verifier = sharedkey.Verifier{Keys: next.keys, Policies: next.policies, OAuth: s.oauth, Now: s.now}
	for _, a := range list {
		made, err := newAccount(a)
		if err != nil {
			return fmt.Errorf("server: account %q: %w", a.Name, err)
		}
		if next.byName[a.Name] != nil {
			return fmt.Errorf("server: account %q is given twice", a.Name)
		}
		next.byName[a.Name] = made
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range next.byName {
		if c := s.properties[name]; c == nil || !c.Of(a.store) {
			s.properties[name] = metadata.NewPropertyCache(a.store, s.now)
		}
		a.properties = s.properties[name]
	}
	s.accounts.Store(next)
	return nil
}

// newAccount returns an account without properties.
func newAccount(a Account) (*account, error) {
	if !sharedkey.IsAccountName(a.Name) {
		return nil, errors.New("a name is 3 to 24 lower-case letters and digits")
	}
	if a.Store == nil {
		return nil, errors.New("no store given")
	}
	newKeys := sharedkey.NewKeys
	if a.WeakKeys {
		newKeys = sharedkey.NewWeakKeys
	}
	keys, err := newKeys(a.Keys...)
	if err != nil {
		return nil, err
	}
	made := &account{name: a.Name, keys: keys, store: a.Store}
	if _, ok := a.Store.(store.Pinger); ok {
		made.budgetBytes = memory.MaxPageBytes
	}
	return made, nil
}

// keys returns the keys of an account, nil if there is no account of that name.
func (s *accounts) keys(account string) *sharedkey.Keys {
	if a := s.byName[account]; a != nil {
		return a.keys
	}
	return nil
}

// ServeHTTP serves one request. The account is in the host or is the first segment of the
// path. Do not strip a prefix of the path: see the package comment.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.exchange(w, r, (*exchange).handle)
}

// exchange serves one request by handle.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, handle func(*exchange) error) {
	x := s.idle.Get().(*exchange)
	// Also after a panic that serve does not recover from.
	defer s.idle.Put(x)
	defer x.end()
	x.begin(w, r)
	x.serve(handle)
	if s.observe != nil {
		x.finishEvent()
		s.observe(x.event)
	}
}
