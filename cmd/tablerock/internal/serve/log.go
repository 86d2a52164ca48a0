package serve

import (
	"context"
	"io"
	"log/slog"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logfile"
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
