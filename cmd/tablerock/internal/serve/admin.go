package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/metrics"
	"github.com/tablerock-db/tablerock/internal/explorer"
)

// admin is the server of health, metrics and profiles. It requires no authorization, so
// keep its listener private.
type admin struct {
	serving atomic.Pointer[databases]        // nil while the server accepts no requests
	pages   atomic.Pointer[explorer.Handler] // nil without pages
	ping    func(ctx context.Context) error
	http.Server
}

// databases returns the databases that are served.
func (a *admin) databases() databases {
	if dbs := a.serving.Load(); dbs != nil {
		return *dbs
	}
	return nil
}

// ready returns the reason why the server is not ready, or nil.
func (a *admin) ready(ctx context.Context) error {
	dbs := a.serving.Load()
	if dbs == nil {
		return errors.New("not ready")
	}
	return errors.Join(dbs.failure(), a.ping(ctx))
}

func newAdmin(m *metrics.Metrics, ping func(ctx context.Context) error, log *slog.Logger) *admin {
	a := &admin{ping: ping}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { status(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := a.ready(r.Context()); err != nil {
			status(w, http.StatusServiceUnavailable, logtext.Printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
			return
		}
		status(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", m.Handler())
	// There is no profile "cmdline", because a command line can contain keys.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc(explorer.Root, func(w http.ResponseWriter, r *http.Request) {
		if h := a.pages.Load(); h != nil {
			h.ServeHTTP(w, r)
			return
		}
		if a.serving.Load() == nil {
			status(w, http.StatusServiceUnavailable, "not ready") // the pages come with the databases
			return
		}
		status(w, http.StatusNotFound, "no pages")
	})
	a.Server = http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return a
}

// sendJSON responds with a value that has no function and no channel.
func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
}

// status responds with a line of text.
func status(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // an error means that the client is gone
}
