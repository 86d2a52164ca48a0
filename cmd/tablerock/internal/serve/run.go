package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/tablerock-db/tablerock/internal/front"
	"github.com/tablerock-db/tablerock/server"
)

// Run serves until ctx is done. Then it lets running requests finish and closes the
// databases. It returns a *UsageError, without any effect, if c is invalid.
func Run(ctx context.Context, c Config) error {
	if err := c.applyAzurite(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	main, side, err := c.addresses()
	if err != nil {
		return err
	}
	accounts, err := c.accounts(main.exposed() || side.exposed())
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	log := c.logger()
	m := newMetrics(c.Version)
	at := endpoint{scheme: c.scheme()}
	listener, err := main.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	at.host = main.reach(listener)
	admin := newAdmin(m, log)
	if side != nil {
		l, err := side.listen()
		if err != nil {
			return err
		}
		at.admin = side.reach(l)
		done := background(func() error { return admin.Serve(l) })
		defer func() { admin.Close(); <-done }()
	}

	dbs, err := c.open(accounts, log)
	if err != nil {
		return err
	}
	// Remove the file after the databases are locked: before, it could be the file of a
	// running server.
	if err := removeReady(c.ReadyFile); err != nil {
		return errors.Join(err, dbs.close())
	}
	s := &service{Config: &c, log: log, metrics: m, admin: admin, at: &at, dbs: dbs}
	return errors.Join(s.serve(ctx, listener, main.host), dbs.close())
}

// service is a running server.
type service struct {
	*Config
	log     *slog.Logger
	metrics *metrics
	admin   *admin
	at      *endpoint
	dbs     databases
}

// serve serves on l until ctx is done and the running requests have finished.
func (s *service) serve(ctx context.Context, l net.Listener, host string) error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	tlsConfig, err := s.tlsConfig(host)
	if err != nil {
		return err
	}
	f := front.New(l, handler, front.Options{
		Connections: s.connections(openFiles()), ConnectionsPerAddr: s.MaxConnsPerAddr, TLS: tlsConfig, Logger: s.log,
	})
	s.metrics.watch(s.dbs, f.Connections)
	done := background(f.Serve)
	s.admin.serving.Store(&s.dbs)
	if s.ReadyFile != "" {
		err = writeReady(s.ReadyFile, s.at, s.dbs[0].account)
	}
	if err == nil {
		s.banner(s.at, s.dbs)
		select {
		case <-ctx.Done():
		case err = <-done:
			err = fmt.Errorf("the listener failed: %w", err)
		}
	}
	s.admin.serving.Store(nil)
	s.log.Debug("waiting for running requests")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if late := f.Shutdown(drain); late != nil {
		s.log.Warn("requests were cut short", "after", drainTime.String(), "err", late)
	}
	return errors.Join(err, removeReady(s.ReadyFile))
}

// connections returns the limit of connections for a process that may open that many
// files. It leaves a quarter of the files to the databases, which fail if they cannot open
// one.
func (s *service) connections(files int) int {
	limit := max(1, files/4*3)
	if s.MaxConns <= limit {
		return s.MaxConns
	}
	s.log.Warn("fewer connections than --max-conns: raise the limit of open files", "files", files, "connections", limit)
	return limit
}

// handler returns the handler of the protocol, with metrics and logs.
func (s *service) handler() (http.Handler, error) {
	o := server.Options{OAuth: s.OAuth != ""}
	for _, d := range s.dbs {
		o.Accounts = append(o.Accounts, server.Account{Name: d.name, Keys: d.keys, WeakKeys: d.weak, Store: d.db})
	}
	o.Observe = func(e server.Event) {
		s.metrics.observe(e)
		logRequest(s.log, e, s.AccessLog)
	}
	h, err := server.New(o)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return s.metrics.countInFlight(h), nil
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
