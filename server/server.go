package server

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

// Options configure a Server.
type Options struct {
	// Accounts are the accounts that the server has, each name once. It has no
	// default: at least one must be given.
	Accounts []Account
	// OAuth accepts bearer tokens over TLS. They are read and held against their
	// lifetime, issuer and audience; their signature is not checked. The default
	// is false, which refuses them.
	OAuth bool
	// Observe is called once a request, after its answer was written, by the
	// goroutine of that request. The default is nil, for nobody.
	Observe func(Event)
	// Now tells the time, for the age of signatures. The default is time.Now.
	Now func() time.Time
}

// Account is one storage account.
type Account struct {
	// Name is 3 to 24 lower-case letters and digits.
	Name string
	// Keys are one or two keys in base64, all of which are accepted, so that they
	// can be rotated.
	Keys []string
	// WeakKeys takes keys of fewer than 32 bytes, which can be guessed. The default
	// is to refuse them.
	WeakKeys bool
	// Store holds the account's tables. It stays the caller's, who closes it after
	// the last request.
	Store store.Store
}

// StatusClientGone is the Status of events of clients that went away while their
// request was carried out. No answer has it.
const StatusClientGone = 499

// Event is what became of a request. It holds no secrets, but names that clients
// chose: quote them.
type Event struct {
	Method          string // on the wire
	Operation       string // such as "InsertEntity"; "" if the request named none
	Account, Table  string // "" if what stands there cannot be a name: people paste keys
	Status          int    // StatusClientGone if the client did not wait for another
	Code            string // the protocol's error code, "" without one
	Duration        time.Duration
	Examined        int // rows that the store looked at, where it tells
	Returned        int // entities or tables in the answer
	RequestID       string
	ClientRequestID string
	Err             error // what failed: the request, or beside another Status part of its answer
}

// Server is an http.Handler that speaks the Azure Table protocol. All methods may
// be called concurrently.
type Server struct {
	accounts map[string]*account
	verifier sharedkey.Verifier
	observe  func(Event)
	now      func() time.Time
	idle     sync.Pool // of *exchange
	inFlight budget
}

// account is an Account as the server works with it.
type account struct {
	name       string
	keys       *sharedkey.Keys
	store      store.Store
	properties *propertyCache
}

// New returns a server for the accounts of o, or says which of them cannot be.
func New(o Options) (*Server, error) {
	s := &Server{accounts: make(map[string]*account), observe: o.Observe, now: o.Now}
	if s.now == nil {
		s.now = systemNow
	}
	s.idle.New = func() any { return newExchange(s) }
	if len(o.Accounts) == 0 {
		return nil, errors.New("server: no account given")
	}
	for _, a := range o.Accounts {
		made, err := newAccount(a)
		if err != nil {
			return nil, fmt.Errorf("server: account %q: %w", a.Name, err)
		}
		if s.accounts[a.Name] != nil {
			return nil, fmt.Errorf("server: account %q is given twice", a.Name)
		}
		s.accounts[a.Name] = made
	}
	s.verifier = sharedkey.Verifier{Keys: s.keys, Policies: s.policies, OAuth: o.OAuth, Now: s.now}
	return s, nil
}

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
	return &account{name: a.Name, keys: keys, store: a.Store, properties: newPropertyCache(a.Store)}, nil
}

// keys returns the keys of an account, nil if there is none of the name.
func (s *Server) keys(account string) *sharedkey.Keys {
	if a := s.accounts[account]; a != nil {
		return a.keys
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.idle.Get().(*exchange)
	// Also after a panic that serve does not recover from.
	defer s.idle.Put(x)
	defer x.end()
	x.begin(w, r)
	x.serve()
	if s.observe != nil {
		x.finishEvent()
		s.observe(x.event)
	}
}
