package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/metrics"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/recent"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/requestlog"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/schedule"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/tracing"
	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/server"
)

// Run serves until ctx is done. Then it lets running requests finish and closes the
// databases. It returns a *UsageError, without any effect, if c is invalid. SIGHUP makes it
// read the accounts file and the certificate again, and open the file of --debug again.
func Run(ctx context.Context, c Config) error {
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	broken := make(chan os.Signal, 1) // else the process ends when nobody reads its log any more
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	if err := c.applyAzurite(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := c.checkReady(); err != nil {
		return err
	}
	main, side, err := c.addresses()
	if err != nil {
		return err
	}
	exposed := main.exposed() || side.exposed()
	if err := c.checkFaults(ctx, exposed); err != nil {
		return err
	}
	accounts, err := c.accounts(ctx, exposed)
	if err != nil {
		return err
	}
	if err := cmp.Or(c.checkBackend(accounts), c.checkBackups(accounts)); err != nil {
		return err
	}
	memory := c.memoryOf(accounts)
	defer tuneCollector(memory.heap())()
	// The listener opens after the databases. A busy address must leave them untouched.
	if err := main.check(); err != nil {
		return err
	}
	log, debug, err := c.openLog(ctx)
	if err != nil {
		return err
	}
	memory.warn(log)
	m, open, latest := metrics.New(c.Version), c.newDatabaseSet(log), recent.New(time.Now)
	latest.InFlight = m.InFlight
	s := &service{
		Config: &c, log: log, debug: debug, memory: memory, metrics: m, admin: newAdmin(m, open.ping, log), main: main, exposed: exposed, recent: latest,
		at: &endpoint{scheme: c.scheme()}, open: open, hangUps: hangUps,
	}
	return errors.Join(s.run(ctx, side, accounts), debug.Close())
}

// service is a running server.
type service struct {
	*Config
	log     *slog.Logger
	debug   *logfile.File // nil without --debug
	memory  memory
	metrics *metrics.Metrics
	admin   *admin
	main    *address
	side    *address // of the admin listener, nil without one
	recent  *recent.Monitor
	exposed bool // other machines can reach a listener
	at      *endpoint
	open    *databaseSet
	backups *schedule.Backups
	dbs     databases // of the accounts that are served
	server  *server.Server
	front   *front.Server
	tls     *certificate    // nil without TLS
	tracer  *tracing.Tracer // nil without --otlp-endpoint
	hangUps <-chan os.Signal

	publishing sync.Mutex
	ends       bool // +checklocks:publishing
}

// run opens the admin listener, if there is one, and the databases, and serves.
func (s *service) run(ctx context.Context, side *address, accounts []account) error {
	if side != nil {
		l, err := side.listen()
		if err != nil {
			return err
		}
		serve := func() error { return s.admin.Serve(l) }
		s.at.admin = "http://" + side.reach(l.Addr())
		if side.exposed() && s.Cert != "" {
			if s.tls, err = s.newCertificate(s.main.host); err != nil {
				return errors.Join(err, l.Close())
			}
			s.admin.TLSConfig = s.tls.config()
			serve = func() error { return s.admin.ServeTLS(l, "", "") }
			s.at.admin = "https://" + side.reach(l.Addr())
		}
		s.side = side
		done := background(serve)
		defer func() { s.admin.Close(); <-done }()
	}
	defer s.warnLate(ctx)()
	if err := s.openBackups(ctx); err != nil {
		return err
	}
	err := s.openDatabases(ctx, accounts)
	switch {
	case err == nil:
		s.backups.Note(ctx, s.dbs.forBackups())
		err = s.serve(ctx)
	case errors.Is(err, ctx.Err()):
		err = nil // ctx ended before the server was ready
	}
	return errors.Join(err, s.open.close(), s.backups.Close())
}

// openBackups opens the directory of --backup-dir, if there is one.
func (s *service) openBackups(ctx context.Context) (err error) {
	s.backups, err = schedule.Open(ctx, schedule.Options{
		Dir: s.BackupDir, Data: s.Data, Every: s.BackupEvery, Keep: s.BackupKeep, ArchiveEvery: s.ArchiveEvery,
		Databases: func() []schedule.Database { return s.admin.databases().forBackups() }, Log: s.log,
	})
	if err == nil && s.BackupDir != "" {
		s.open.archive, s.open.fork = s.backups.Archive, s.backups.Fork
	}
	return err
}

// openDatabases opens the databases of the accounts.
func (s *service) openDatabases(ctx context.Context, accounts []account) (err error) {
	if s.dbs, err = s.open.of(ctx, accounts); err != nil {
		return err
	}
	s.open.backends.Serve(s.dbs.urls())
	// Remove the file after the databases are locked: before, it could be the file of a
	// running server.
	return removeReady(s.ReadyFile)
}

// serve serves until ctx is done and the running requests have finished.
func (s *service) serve(ctx context.Context) error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	failing, err := s.failing(handler)
	if err != nil {
		return err
	}
	if s.tracer, err = s.newTracer(ctx); err != nil {
		return err
	}
	defer s.tracer.Close()
	if s.tls == nil {
		if s.tls, err = s.newCertificate(s.main.host); err != nil {
			return err
		}
	}
	l, err := s.main.listen()
	if err != nil {
		return err
	}
	s.at.host = s.main.reach(l.Addr())
	s.front = front.New(l, s.tracer.Handler(failing), front.Options{
		Connections: s.connections(openFiles()), ConnectionsPerAddr: s.MaxConnsPerAddr, Refuse: s.server.RefuseBusy, TLS: s.tls.config(), Logger: s.log,
	})
	s.metrics.Watch(func() []metrics.Database { return s.admin.databases().forMetrics() }, s.front.Connections)
	s.metrics.Add(pgbackend.Help(), s.open.backends.WriteMetrics)
	s.metrics.Add(schedule.Help(), s.backups.WriteMetrics)
	s.recent.Conns = s.front.Connections
	endPages, err := s.startPages(handler)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer endPages()
	done := background(s.front.Serve)
	endLocal := s.serveLocal(s.tracer.Handler(handler))
	err = s.publish()
	if err == nil {
		s.banner(s.at, s.dbs)
		s.printLink()
		s.notify(stateReady)
		// They end last: a backup directory that does not answer must not keep the listener open.
		defer s.backups.Start(ctx)()
		defer s.startReloads(ctx)()
		err = s.wait(ctx, done)
		s.notify(stateStopping)
	}
	s.unpublish()
	s.log.Debug("waiting for running requests")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	commands := background(func() error { endLocal(drain); return nil }) // a backup can need all of drainTime
	if late := s.front.Shutdown(drain); late != nil {
		s.log.Warn("requests were cut short", "after", drainTime.String(), "err", late)
	}
	<-commands
	return errors.Join(err, removeReady(s.ReadyFile))
}

// warnLate logs that the server does not end, some time after the end of ctx, until the function
// is called.
func (s *service) warnLate(ctx context.Context) (end func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-ended:
		case <-time.After(2 * drainTime):
			s.log.Warn("still waiting for the backup directory or for a database; a second signal ends the server at once and loses no acknowledged write")
		}
	})
	return func() { close(ended); stop() }
}

// unpublish makes the server not ready, for good.
func (s *service) unpublish() {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.ends = true
	s.admin.serving.Store(nil)
}

// publish makes the server ready, with the databases of s.dbs, unless it ends.
func (s *service) publish() error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if s.ends {
		return nil
	}
	dbs := s.dbs
	s.admin.serving.Store(&dbs)
	if s.ReadyFile == "" {
		return nil
	}
	return writeReady(s.ReadyFile, s.at, s.dbs[0].account)
}

// wait waits for the end of ctx or the error of the listener.
func (s *service) wait(ctx context.Context, failed <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("the listener failed: %w", err)
	}
}

// connections returns the limit of connections for a process that may open that many
// files. It leaves a quarter of the files, and at least 32, 8 for each account and the connections to
// PostgreSQL, to the databases, which fail if they cannot open one. But many accounts, of which few have that many
// files open, leave an eighth of the files to connections.
func (s *service) connections(files int) int {
	reserved := 32 + s.open.backends.Conns()
	if !s.InMemory {
		reserved += 8 * len(s.open.open) // also those that are no longer served
	}
	limit := max(1, files/8, min(files/4*3, files-reserved))
	if s.MaxConns <= limit {
		return s.MaxConns
	}
	s.log.Warn("fewer connections than --max-conns: raise the limit of open files", "files", files, "connections", limit)
	return limit
}

// handler returns the handler of the protocol, with metrics and logs. It sets s.server.
func (s *service) handler() (http.Handler, error) {
	o := server.Options{OAuth: s.OAuth != "", Accounts: s.dbs.accounts(), RequestBytes: s.memory.requests()}
	requests := requestlog.New(s.log, s.AccessLog)
	o.Observe = func(e server.Event) {
		s.metrics.Observe(e)
		s.tracer.Observe(e)
		s.observeRecent(&e)
		requests.Observe(e)
	}
	var err error
	if s.server, err = server.New(o); err != nil {
		return nil, usagef("%v", err)
	}
	return s.metrics.CountInFlight(s.server), nil
}

// newTracer returns the tracer of --otlp-endpoint, nil without one.
func (s *service) newTracer(ctx context.Context) (*tracing.Tracer, error) {
	if s.OTLPEndpoint == "" {
		return nil, nil
	}
	return tracing.Start(ctx, s.OTLPEndpoint, s.Version, s.log)
}

// background runs serve in a goroutine and sends its error.
func background(serve func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := serve()
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		done <- err
	}()
	return done
}
