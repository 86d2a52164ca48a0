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

// logger returns a logger that writes to standard error.
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

// logRequest logs a request if the server failed or found damage, or if all is set. It
// never logs paths, queries or headers, because they can contain signatures.
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

// maxPrinted limits the bytes of a name from a client in the log.
const maxPrinted = 4 << 10

// printable returns s with every character escaped that is neither visible nor a space, so
// that a client cannot write lines or control sequences to the log.
func printable(s string) string {
	if len(s) > maxPrinted {
		s = s[:maxPrinted]
	}
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
