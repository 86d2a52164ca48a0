package serve

import (
	"context"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
)

// startReloads reloads after each SIGHUP. The function waits for the end of a reload under way.
func (s *service) startReloads(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := background(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-s.hangUps:
				s.notify(stateReloading)
				if s.reload(ctx); ctx.Err() == nil {
					s.notify(stateReady)
				}
			}
		}
	})
	return func() { cancel(); <-done }
}

// reload opens the file of --debug again, and reads the accounts file and the certificate again.
// It logs what cannot be used, and the server continues with what it has.
func (s *service) reload(ctx context.Context) {
	if err := s.debug.Reopen(); err != nil {
		s.log.Error("SIGHUP: the file of --debug stays as it was", "err", logtext.Advice(err))
	}
	if s.AccountsFile == "" && s.tls == nil {
		s.log.Info("SIGHUP: there is no accounts file and no certificate to read again")
	}
	if s.AccountsFile != "" {
		if err := s.reloadAccounts(ctx); err != nil {
			s.log.Error("SIGHUP: the accounts stay as they were", "err", logtext.Advice(err))
		} else {
			s.log.Info("SIGHUP: read the accounts again", "accounts", len(s.dbs))
		}
	}
	if s.tls != nil {
		if err := s.tls.load(); err != nil {
			s.log.Error("SIGHUP: the certificate stays as it was", "err", logtext.Advice(err))
		} else {
			s.log.Info("SIGHUP: read the certificate again", "expires", s.tls.expires())
		}
	}
}

// reloadAccounts reads the accounts again and opens the databases of new ones. Databases of
// accounts that are no longer served stay open until the end, because requests under way
// use them.
func (s *service) reloadAccounts(ctx context.Context) error {
	// The pipe that was read at the start has no more to read, and another may have no writer.
	if err := openfile.Regular(s.AccountsFile); err != nil {
		return unreadable("--accounts-file", err)
	}
	accounts, err := s.accounts(ctx, s.exposed)
	if err != nil {
		return err
	}
	dbs, err := s.open.of(ctx, accounts)
	if err != nil {
		return err
	}
	if err := s.server.SetAccounts(dbs.accounts()); err != nil {
		return err
	}
	s.dbs = dbs
	s.open.backends.Serve(dbs.urls())
	s.front.LimitConnections(s.connections(openFiles())) // more databases need more files
	if err := s.publish(); err != nil {
		s.log.Error("SIGHUP: the ready file is not up to date", "err", logtext.Advice(err))
	}
	s.backups.Note(ctx, dbs.forBackups())
	return nil
}
