package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// logger writes to standard error.
func (c *Config) logger() *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	switch {
	case c.Debug:
		o.Level = slog.LevelDebug
	case c.Quiet:
		o.Level = slog.LevelWarn
	}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(c.Stderr, o))
}

// logRequest logs one request: failures of the server and damage that it met, and
// the rest if all are wanted. Paths, queries and headers never come here: they have signatures.
func logRequest(log *slog.Logger, e server.Event, all bool) {
	level := slog.LevelInfo
	failed := e.Err != nil && (e.Status >= http.StatusInternalServerError || errors.Is(e.Err, store.ErrCorrupt))
	if failed {
		level = slog.LevelError
	}
	if !all && !failed || !log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", printable(e.Method)),
		slog.String("operation", e.Operation),
		slog.String("account", printable(e.Account)),
		slog.String("table", printable(e.Table)),
		slog.Int("status", e.Status),
		slog.String("code", e.Code),
		slog.Float64("ms", float64(e.Duration.Round(time.Microsecond))/float64(time.Millisecond)),
		slog.Int("examined", e.Examined),
		slog.Int("returned", e.Returned),
		slog.String("request_id", e.RequestID),
		slog.String("client_request_id", printable(e.ClientRequestID)),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("err", printable(e.Err.Error())))
	}
	log.LogAttrs(context.Background(), level, "request", attrs...)
}

// mostPrinted is how much of a name that a client chose is logged.
const mostPrinted = 4 << 10

// printable returns s with everything escaped that is no visible character or
// space, so that no client writes lines, or to a terminal, through the log.
func printable(s string) string {
	if len(s) > mostPrinted {
		s = s[:mostPrinted]
	}
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
