package pgbackend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
)

// connectTime limits the time to connect. It is enough for a few servers that do not answer.
const connectTime = 20 * time.Second

// errBusy is the error of a Ping whose ctx ended.
var errBusy = fmt.Errorf("%w: it does not answer, or all connections are in use", store.ErrUnavailable)

// connect opens a database. The error names it and has the next step.
func connect(ctx context.Context, u *URL, o *postgres.Options) (*postgres.Database, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, errSilent)
	defer cancel()
	db, err := postgres.Connect(ctx, u.connection, o)
	if err != nil {
		return nil, explain(ctx, u, err)
	}
	return db, nil
}

// Open opens the store of an account for a command. Its Close closes the database.
func Open(ctx context.Context, u *URL, account string, o *postgres.Options) (store.Store, error) {
	db, err := connect(ctx, u, o)
	if err != nil {
		return nil, err
	}
	s, err := db.Account(ctx, account)
	if err != nil {
		return nil, errors.Join(explain(ctx, u, err), db.Close())
	}
	return &single{s, db}, nil
}

// single is the only store of a database.
type single struct {
	*postgres.Store
	db *postgres.Database
}

// Close closes the store and the database.
func (s *single) Close() error { return errors.Join(s.Store.Close(), s.db.Close()) }

// Set has the databases of a server. Accounts at one URL share a database and its
// connections. It is safe for concurrent use.
type Set struct {
	options postgres.Options

	opening sync.Mutex // held while a database or a store is opened, which can take long

	mu     sync.Mutex
	open   map[string]*member // by URL; +checklocks:mu
	served map[string]bool    // by URL, nil for all; +checklocks:mu
}

// member is an open database with its accounts.
type member struct {
	url    *URL
	db     *postgres.Database
	stores map[string]*postgres.Store // changes with Set.opening held
}

// NewSet returns a Set that opens databases with these options.
func NewSet(o postgres.Options) *Set { return &Set{options: o, open: make(map[string]*member)} }

// Store returns the store of an account in the database at u. It opens both at the first
// call, and keeps them until Close.
func (s *Set) Store(ctx context.Context, u *URL, account string) (*postgres.Store, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	m := s.open[u.connection]
	s.mu.Unlock()
	if m == nil {
		db, err := connect(ctx, u, &s.options)
		if err != nil {
			return nil, err
		}
		m = &member{u, db, make(map[string]*postgres.Store)}
		s.mu.Lock()
		s.open[u.connection] = m
		s.mu.Unlock()
	}
	if m.stores[account] == nil {
		one, err := m.db.Account(ctx, account)
		if err != nil {
			return nil, explain(ctx, u, err)
		}
		m.stores[account] = one
	}
	return m.stores[account], nil
}

// Serve names the databases of the accounts that are served. Others that are open, as for requests
// of an account that was removed, do not count for Ping and have no figures.
func (s *Set) Serve(urls []*URL) {
	served := make(map[string]bool, len(urls))
	for _, u := range urls {
		served[u.connection] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = served
}

// members returns the open databases in the order of their names.
func (s *Set) members() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.open), func(a, b *member) int { return strings.Compare(a.url.text, b.url.text) })
}

// servedMembers returns those of members that are served.
func (s *Set) servedMembers() []*member {
	list := s.members()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(list, func(m *member) bool { return s.served != nil && !s.served[m.url.connection] })
}

// Ping asks the databases that are served at once whether they can serve. It returns the reasons
// of those that cannot.
func (s *Set) Ping(ctx context.Context) error {
	list := s.servedMembers()
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, m := range list {
		all.Go(func() {
			err := m.db.Ping(ctx)
			// ErrUnavailable has the reason, which can be that another host of the URL did not answer in time.
			if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnavailable) {
				err = errBusy
			}
			if err != nil {
				errs[i] = &named{m.url, err}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Close closes the databases and stores. It waits for no write whose commit does not end, as without a
// standby: that one returns store.ErrOutcomeUnknown.
func (s *Set) Close() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	var all []error
	for _, m := range s.members() {
		errs := []error{m.db.Close()}
		for _, one := range m.stores {
			errs = append(errs, one.Close())
		}
		if err := errors.Join(errs...); err != nil {
			all = append(all, fmt.Errorf("close %s: %w", m.url, err))
		}
	}
	return errors.Join(all...)
}
