package serve

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// serveLocal serves the commands that use the data directory, by handler, and returns a
// function that ends this. Without a listener, such commands fail because the databases are
// locked; the server works without it.
func (s *service) serveLocal(handler http.Handler) (end func(context.Context)) {
	if s.InMemory || len(s.dbs.local()) == 0 {
		return func(context.Context) {}
	}
	l, err := local.Listen(s.Data)
	if err != nil {
		s.log.Warn("commands that write cannot use this server", "err", logtext.Advice(err))
		return func(context.Context) {}
	}
	f := front.New(l, &localHandler{l, handler, s.admin.databases, s.at, s.backups.ServeHTTP, s.answerLink}, front.Options{Logger: s.log})
	done := background(f.Serve)
	return func(ctx context.Context) {
		if err := f.Shutdown(ctx); err != nil {
			s.log.Warn("commands were cut short", "err", err)
		}
		<-done
		_ = l.Close() // for its file; the front has closed the listener
	}
}

// localHandler signs the requests of the owner of the data directory.
type localHandler struct {
	l         *local.Listener
	next      http.Handler
	databases func() databases
	at        *endpoint
	backup    http.HandlerFunc
	link      http.HandlerFunc
}

// ServeHTTP passes a request on, signed with a key of its account.
func (h *localHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !h.l.Allows(r) {
		status(w, http.StatusForbidden, "no token")
		return
	}
	if r.URL.Path == local.ConnectionsPath {
		h.answerConnections(w)
		return
	}
	if r.URL.Path == local.LinkPath {
		h.link(w, r)
		return
	}
	if r.URL.Path == backups.Path {
		h.backup(w, r)
		return
	}
	for _, one := range h.databases() {
		if one.name != name {
			continue
		}
		sign := sharedkey.NewCredential
		if one.weak {
			sign = sharedkey.NewWeakCredential
		}
		c, err := sign(one.name, one.keys[0])
		if err == nil {
			err = c.SignRequest(r, time.Now())
		}
		if err != nil {
			status(w, http.StatusBadRequest, logtext.Printable(err.Error()))
			return
		}
		h.next.ServeHTTP(w, r)
		return
	}
	status(w, http.StatusNotFound, "this server does not have the account")
}
