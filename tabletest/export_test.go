package tabletest

import (
	"log/slog"

	"github.com/tablerock-db/tablerock/engine"
)

// SetLogger sets the logger of the databases that Reset opens.
func (s *Server) SetLogger(l *slog.Logger) { s.db.options.Logger = l }

// Stats returns the figures of the current database.
func (s *Server) Stats() (engine.Stats, error) { return s.db.current.Load().Stats() }
