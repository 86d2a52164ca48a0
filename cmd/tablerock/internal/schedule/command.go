package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/store"
)

// createFor makes a backup for a command.
func (b *Backups) createFor(ctx context.Context, dest, account string, progress backups.Progress) (list []backup.Info, err error) {
	var dbs []backups.Database
	for _, one := range b.Databases() {
		if account == "" || account == one.Account {
			dbs = append(dbs, one.Database)
		}
	}
	switch {
	case len(dbs) == 0 && account == "": // after a reload; one that starts without such an account has no listener for commands
		err := errors.New("the server that has the directory serves no account with a database in it")
		return nil, hint.With(err, "back up a database of PostgreSQL by its own tools")
	case len(dbs) == 0:
		return nil, fmt.Errorf("the server that has the directory does not serve the account %s", account)
	}
	w := b.writer
	if w == nil || !sameDir(dest, b.Dir) {
		if w, err = backups.NewWriter(ctx, dest, b.Data); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		return b.create(ctx, w, dbs, progress)
	}
	list, err = b.create(ctx, w, dbs, progress)
	tried := len(dbs)
	if ctx.Err() != nil { // the command was interrupted
		tried = len(list)
	}
	b.note(tried, list)
	return list, err
}

// create makes one backup at a time, because they share a directory for links.
func (b *Backups) create(ctx context.Context, w *backups.Writer, dbs []backups.Database, progress backups.Progress) ([]backup.Info, error) {
	select {
	case b.one <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-b.one }()
	return w.Create(ctx, b.Data, dbs, progress)
}

// sameDir reports whether two paths are of one directory, also by a link.
func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// ServeHTTP answers the request of a command for a backup.
func (b *Backups) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	backups.Serve(w, r, func(ctx context.Context, dest, account string, progress backups.Progress) ([]backup.Info, error) {
		list, err := b.createFor(ctx, dest, account, progress)
		log := b.Log.With("dest", logtext.Printable(dest), "backups", len(list))
		switch {
		case err == nil:
			log.Info("backup made for a command")
		case errors.Is(err, store.ErrLocked):
			log.Warn("backup for a command failed", "err", err)
		default:
			log.Error("backup for a command failed", "err", err)
		}
		return list, err
	})
}
