package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/metrics"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/schedule"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/ui"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/vfs"
)

// database is the open database of one account.
type database struct {
	account
	db    *engine.DB // nil with a backend
	store store.Store
	ui    *ui.Database // nil with a backend
	// flushed is the last sequence number that was in sstables when the database was opened, with
	// an archive: what is flushed later is archived.
	flushed uint64
}

// databases are open databases, one of each account.
type databases []database

// local returns the databases that are in the directory or in memory.
func (d databases) local() databases {
	var list databases
	for _, one := range d {
		if one.db != nil {
			list = append(list, one)
		}
	}
	return list
}

// urls returns the databases of PostgreSQL, of each account that is in one.
func (d databases) urls() []*pgbackend.URL {
	var list []*pgbackend.URL
	for _, one := range d {
		if one.backend != nil {
			list = append(list, one.backend)
		}
	}
	return list
}

// forBackups returns those of local, for their backups.
func (d databases) forBackups() []schedule.Database {
	var list []schedule.Database
	for _, one := range d.local() {
		list = append(list, schedule.Database{Database: backups.Database{Account: one.name, DB: one.db}, Flushed: one.flushed})
	}
	return list
}

// forMetrics returns those of local, for their metrics.
func (d databases) forMetrics() []metrics.Database {
	var list []metrics.Database
	for _, one := range d.local() {
		list = append(list, metrics.Database{Account: one.name, DB: one.db})
	}
	return list
}

// databaseSet has all open databases. Those of the engine share one cache.
type databaseSet struct {
	c        *Config
	log      *slog.Logger
	cache    *engine.Cache
	open     map[string]database // of the engine, by account
	backends *pgbackend.Set
	// archive returns the archive of an account, nil if there is none.
	archive func(account string) engine.Archive
	// fork gives an older copy of a database that is archived a new epoch.
	fork func(ctx context.Context, account, dir string) (bool, error)
}

func (c *Config) newDatabaseSet(log *slog.Logger) *databaseSet {
	return &databaseSet{
		c: c, log: log, cache: engine.NewCache(int64(c.CacheBytes)), open: make(map[string]database),
		backends: pgbackend.NewSet(postgres.Options{AllowAsync: c.Backend.AllowAsync, MaxConns: c.BackendConns, Log: log}),
	}
}

// of returns the databases of the accounts. It opens those that are not open, and creates
// missing ones.
func (s *databaseSet) of(ctx context.Context, accounts []account) (databases, error) {
	local := 0
	for _, a := range accounts {
		if a.backend == nil {
			local++
		}
	}
	if !s.c.InMemory && local > 0 {
		if err := hint.Data("--data", s.c.Data); err != nil {
			return nil, err
		}
	}
	var dbs databases
	for _, a := range accounts {
		if a.backend != nil {
			one, err := s.backends.Store(ctx, a.backend, a.name)
			if err != nil {
				return nil, err
			}
			dbs = append(dbs, database{account: a, store: one})
			continue
		}
		one, open := s.open[a.name]
		if !open {
			err := ctx.Err() // opening a database can take long
			if err == nil {
				one, err = s.openOne(ctx, a, local)
			}
			if err != nil {
				return nil, err
			}
			s.open[a.name] = one
		}
		one.account = a // its keys may be others than when it was opened
		dbs = append(dbs, one)
	}
	return dbs, nil
}

// maxReserve is the disk space that all accounts keep for a full disk. On a small volume
// it is reserveShare of the volume.
const (
	maxReserve   = 16 << 20
	reserveShare = 16
)

// openOne opens the database of one of n accounts.
func (s *databaseSet) openOne(ctx context.Context, a account, n int) (database, error) {
	one := database{account: a}
	jobs := &ui.Jobs{}
	log := slog.New(slog.NewMultiHandler(s.log.With("account", a.name).Handler(), jobs))
	compression, err := ParseCompression(s.c.Compression)
	if err != nil {
		return one, err
	}
	o := engine.Options{Cache: s.cache, SegmentBytes: int64(s.c.SegmentBytes), Logger: log, Compression: compression}
	if s.c.InMemory {
		o.FS = vfs.NewMem()
	} else if azurite := hint.AzuriteData(s.c.Data, a.name); azurite != "" {
		// With --quiet too: without the hint, the tables seem to be lost.
		fmt.Fprintln(s.c.Stderr, "tablerock: "+azurite)
	} else if warning := hint.UnrelatedFiles("--data", s.c.Data, a.name); warning != "" {
		s.c.say("%s", warning)
	}
	o.ReserveBytes = reserve(vfs.OS(), filepath.ToSlash(s.c.Data)) / int64(n)
	dir := filepath.ToSlash(filepath.Join(s.c.Data, a.name))
	if s.archive != nil {
		o.Archive = s.archive(a.name)
		forked, err := s.fork(ctx, a.name, dir)
		if err != nil { // an older copy would be archived in the history of the newer one
			return one, fmt.Errorf("compare the database of %s with its backups: %w", a.name, err)
		}
		if forked {
			s.log.Warn("an older copy of the database is in its place: its history is a new one in the backup directory", "account", a.name)
		}
		if m, err := manifest.Read(vfs.OS(), dir); err == nil { // else Open returns the error, or makes the database
			one.flushed = m.LastSeq
		}
	}
	if s.c.InMemory {
		dir = path.Join("memory", a.name)
	}
	if one.db, err = engine.Open(dir, o); err != nil {
		return one, hint.Open(err)
	}
	if !s.c.InMemory {
		if err := backups.RemoveLeftovers(s.c.Data, a.name); err != nil {
			s.log.Warn("what a killed backup left cannot be removed", "account", a.name, "err", logtext.Advice(err))
		}
	}
	one.store, one.ui = one.db, &ui.Database{DB: one.db, FS: o.FS, Dir: dir, SegmentBytes: o.SegmentBytes, Jobs: jobs}
	return one, nil
}

// reserve returns the bytes that all accounts keep on the volume of dir, which may not exist yet.
func reserve(fsys vfs.FS, dir string) int64 {
	volume, err := fsys.Space(dir)
	for ; errors.Is(err, fs.ErrNotExist) && path.Dir(dir) != dir; volume, err = fsys.Space(dir) {
		dir = path.Dir(dir)
	}
	if err != nil {
		return maxReserve
	}
	return min(maxReserve, volume.Total/reserveShare)
}

// close closes all databases. Those on disk are flushed.
func (s *databaseSet) close() error {
	closeDB := (*engine.DB).Close
	if s.c.InMemory {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		closeDB = func(db *engine.DB) error { return db.CloseContext(ctx) }
	}
	var errs []error
	for name, one := range s.open {
		if err := closeDB(one.db); err != nil {
			errs = append(errs, fmt.Errorf("close the database of %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, s.backends.Close())...)
}

// accounts returns the accounts for the server.
func (d databases) accounts() []server.Account {
	list := make([]server.Account, len(d))
	for i, one := range d {
		list[i] = server.Account{Name: one.name, Keys: one.keys, WeakKeys: one.weak, Store: one.store}
	}
	return list
}

// failure returns the errors of the databases in the directory that accept no writes until a
// restart of the server, or nil.
func (d databases) failure() error {
	var errs []error
	for _, one := range d.local() {
		if err := one.db.Failure(); err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", one.name, err))
		}
	}
	return errors.Join(errs...)
}
