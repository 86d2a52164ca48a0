package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
)

// database is the open database of one account.
type database struct {
	account
	db *engine.DB
}

// databases are the open databases of all accounts.
type databases []database

// open opens the database of every account, and creates missing ones. They share one cache.
func (c *Config) open(accounts []account, log *slog.Logger) (databases, error) {
	if !c.InMemory {
		if err := hint.Data(c.Data); err != nil {
			return nil, err
		}
	}
	cache := engine.NewCache(int64(c.CacheBytes))
	var open databases
	for _, a := range accounts {
		o := engine.Options{Cache: cache, SegmentBytes: int64(c.SegmentBytes), Logger: log.With("account", a.name)}
		if c.InMemory {
			o.FS = vfs.NewMem()
		} else if warning := hint.UnrelatedFiles(c.Data, a.name); warning != "" {
			c.say("%s", warning)
		}
		db, err := engine.Open(filepath.ToSlash(filepath.Join(c.Data, a.name)), o)
		if err != nil {
			return nil, errors.Join(err, open.close())
		}
		open = append(open, database{a, db})
	}
	return open, nil
}

// failure returns the errors of the databases that accept no writes until a restart of the
// server, or nil.
func (d databases) failure() error {
	var errs []error
	for _, one := range d {
		if err := one.db.Failure(); err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", one.name, err))
		}
	}
	return errors.Join(errs...)
}

// close flushes and closes all databases.
func (d databases) close() error {
	var errs []error
	for _, one := range d {
		if err := one.db.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the database of %s: %w", one.name, err))
		}
	}
	return errors.Join(errs...)
}
