package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// openLog returns a logger that writes to standard error and, with details for debugging,
// to the file of --debug, nil without one. Close the file after the last line.
func (c *Config) openLog(ctx context.Context) (log *slog.Logger, file *logfile.File, err error) {
	level := slog.LevelInfo
	if c.Quiet {
		level = slog.LevelWarn
	}
	h := c.logHandler(c.Stderr, level)
	if c.DebugLog == "" {
		return slog.New(h), nil, nil
	}
	if file, err = logfile.Open(ctx, "--debug", c.DebugLog); err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewMultiHandler(h, c.logHandler(file, slog.LevelDebug))), file, nil
}

func (c *Config) logHandler(w io.Writer, level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}

// logRequest logs a request: with details for debugging or, if all is set or if the server
// failed or found damage, always. It never logs paths, queries or headers, because they can
// contain signatures.
func logRequest(log *slog.Logger, e server.Event, all bool) {
	level := slog.LevelDebug
	if all {
		level = slog.LevelInfo
	}
	if e.Err != nil && (e.Status >= http.StatusInternalServerError || errors.Is(e.Err, store.ErrCorrupt)) {
		level = slog.LevelError
	}
	if !log.Enabled(context.Background(), level) {
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
	log.LogAttrs(context.Background(), level, "request", attrs...)
}
