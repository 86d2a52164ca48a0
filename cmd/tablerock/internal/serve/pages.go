package serve

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/recent"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/ui"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/livestate"
	"github.com/tablerock-db/tablerock/server"
)

// The values of --ui.
const (
	uiOn  = "on"
	uiOff = "off"
)

// observeRecent passes a request to the monitor of the pages.
func (s *service) observeRecent(e *server.Event) {
	s.recent.Observe(&recent.Request{
		Operation: e.Operation, Account: e.Account, Table: e.Table, Write: e.Method != http.MethodGet && e.Method != http.MethodHead,
		Status: e.Status, Code: e.Code, ID: e.RequestID, Duration: e.Duration, Examined: e.Examined, Returned: e.Returned, Filter: e.Filter,
	})
}

// startPages serves the pages of /ui/ on the admin listener, unless there is none, --ui is
// off, or others could read them. The pages use handler for the protocol.
func (s *service) startPages(handler http.Handler) (end func(), err error) {
	secure := strings.HasPrefix(s.at.admin, "https:")
	switch {
	case s.side == nil || s.UI == uiOff:
		return func() {}, nil
	case s.side.exposed() && !secure && !s.UIInsecure:
		s.say("no pages of %s on --admin %s, which other machines can reach: add --cert and --key, or --ui-insecure, or --ui off", explorer.Root, s.Admin)
		return func() {}, nil
	}
	o := ui.Options(s.Version, s.log, s.recent)
	o.Accounts = func() []explorer.Account { return s.pageAccounts(handler) }
	o.Secure = secure
	o.Cache = func() *livestate.Cache {
		for _, one := range s.admin.databases().local() {
			return ui.CacheOf(one.db, int64(s.CacheBytes))
		}
		return nil
	}
	o.Pool = s.open.backends.Pool
	o.Sums = func() map[string]float64 {
		var list []*engine.DB
		for _, one := range s.admin.databases().local() {
			list = append(list, one.db)
		}
		return ui.Sums(list)
	}
	o.Cookie = "tablerock-" + s.at.admin[strings.LastIndexByte(s.at.admin, ':')+1:]
	o.IsHost = func(name string) bool {
		return strings.EqualFold(name, s.side.host) || secure && s.tls.current.Load().Leaf.VerifyHostname(name) == nil
	}
	h, err := explorer.New(o)
	if err != nil {
		return nil, err
	}
	s.admin.pages.Store(h)
	s.at.pages = true
	return func() { s.admin.pages.Store(nil); h.Close() }, nil
}

// pageAccounts returns the accounts for the pages, none while the server is not ready.
func (s *service) pageAccounts(handler http.Handler) []explorer.Account {
	var list []explorer.Account
	for _, one := range s.admin.databases() {
		of := ui.Owner{Name: one.name, Keys: one.keys, Weak: one.weak, Endpoint: s.at.url(one.name), Handler: handler}
		var a explorer.Account
		var err error
		if one.ui != nil {
			a, err = one.ui.Account(of)
		} else {
			a, err = of.Account(one.store, one.backend.String())
		}
		if err != nil {
			s.log.Error("no pages of an account", "account", one.name, "err", logtext.Advice(err))
			continue
		}
		if s.InMemory {
			a.Where = "in memory"
		}
		list = append(list, a)
	}
	return list
}

// printLink prints a link to the pages that logs in.
func (s *service) printLink() {
	if h := s.admin.pages.Load(); h != nil && !s.Quiet {
		ui.PrintLink(s.Stderr, s.at.admin, h)
	}
}

// answerLink serves a link to the owner of the data directory.
func (s *service) answerLink(w http.ResponseWriter, _ *http.Request) {
	h := s.admin.pages.Load()
	if h == nil {
		status(w, http.StatusNotFound, strconv.Quote(explorer.Root)+" is off")
		return
	}
	sendJSON(w, s.at.admin+h.LoginPath())
}
