// Package requestlog logs the requests of a server.
package requestlog

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// Log logs requests.
type Log struct {
	log *slog.Logger
	all bool // log all requests, not only failures

	mu sync.Mutex
	// +checklocks:mu
	away map[string]outage // by account, of those whose store was unavailable
}

// New returns a Log of failures and, for debugging or if all is set, of all requests.
func New(log *slog.Logger, all bool) *Log {
	return &Log{log: log, all: all, away: make(map[string]outage)}
}

// outage counts the requests that a store has refused because it was unavailable.
type outage struct {
	logged time.Time // when the last one was logged as a failure
	since  int       // refused since then
}

// outageInterval is the time between two refusals that are logged as failures while a store is
// unavailable: their reason is mostly the same.
const outageInterval = time.Minute

// isNews reports whether to log a refusal of an unavailable store as a failure, and how many were not
// since the last one.
func (l *Log) isNews(account string) (unlogged int, news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, known := l.away[account]
	if now := time.Now(); !known || now.Sub(o.logged) >= outageInterval {
		l.away[account] = outage{logged: now}
		return o.since, true
	}
	o.since++
	l.away[account] = o
	return 0, false
}

// Observe logs a request: with details for debugging or, if all is set or if the server
// failed or found damage, always. It never logs paths, queries or headers, because they can
// contain signatures.
func (l *Log) Observe(e server.Event) {
	level, unlogged := slog.LevelDebug, 0
	if l.all {
		level = slog.LevelInfo
	}
	if e.Err != nil && (e.Status >= http.StatusInternalServerError || errors.Is(e.Err, store.ErrCorrupt)) {
		failed := true
		if errors.Is(e.Err, store.ErrUnavailable) {
			unlogged, failed = l.isNews(e.Account)
		}
		if failed {
			level = slog.LevelError
		}
	}
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", logtext.Printable(e.Method)),
		slog.String("operation", e.Operation),
		slog.String("account", logtext.Printable(e.Account)),
		slog.String("table", logtext.Printable(e.Table)),
		slog.Int("status", e.Status),
		slog.String("code", e.Code),
		slog.Float64("ms", float64(e.Duration.Round(time.Microsecond))/float64(time.Millisecond)),
		slog.Int("examined", e.Examined),
		slog.Int("returned", e.Returned),
		slog.String("request_id", e.RequestID),
		slog.String("client_request_id", logtext.Printable(e.ClientRequestID)),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("err", logtext.Printable(e.Err.Error())))
	}
	if unlogged > 0 {
		attrs = append(attrs, slog.Int("refused_before", unlogged))
	}
	l.log.LogAttrs(context.Background(), level, "request", attrs...)
}
