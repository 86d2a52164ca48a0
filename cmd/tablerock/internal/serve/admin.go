package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"
)

// admin answers those who look after the server. It needs no authorisation, so
// its listener is not for the world.
type admin struct {
	serves atomic.Pointer[databases] // nil while no requests are taken
	http.Server
}

// ready says why clients had better ask another server, nil if they may come.
func (a *admin) ready() error {
	dbs := a.serves.Load()
	if dbs == nil {
		return errors.New("not ready")
	}
	return dbs.failure()
}

func newAdmin(m *metrics, log *slog.Logger) *admin {
	a := &admin{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { status(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.ready(); err != nil {
			status(w, http.StatusServiceUnavailable, printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
			return
		}
		status(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", m.handler())
	// The profile "cmdline" is left out: a command line may hold keys.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
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

func status(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // a client that has gone needs no answer
}
