package schedule

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
)

// startArchive archives the log of each database every ArchiveEvery, so that a restore can
// reach each moment but the last ones. The function ends that: call it when no request is under
// way, so that a restore can reach the end of the server, for accounts without late writes too.
func (b *Backups) startArchive(ctx context.Context) (end func()) {
	last := context.WithoutCancel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	done, all := make(chan struct{}), make(map[string]Database)
	go func() {
		defer close(done)
		tick := time.NewTicker(b.ArchiveEvery)
		defer tick.Stop()
		for {
			b.archiveAll(ctx, all)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done; b.archiveAll(last, all) }
}

// archiveAll archives the databases that are served, which it adds to all, and those of all:
// an account that is no longer served can have writes that are not archived yet, and requests
// under way.
func (b *Backups) archiveAll(ctx context.Context, all map[string]Database) {
	for _, one := range b.Databases() {
		all[one.Account] = one
	}
	for _, one := range all {
		if err := b.archive(ctx, one); err != nil && ctx.Err() == nil {
			b.Log.Error("archiving failed", "account", one.Account, "err", logtext.Advice(err))
		}
	}
}

// archive makes a backup due if one is needed before the archive can go on, and seals the log.
func (b *Backups) archive(ctx context.Context, one Database) error {
	checkErr := b.checkArchive(ctx, one) // before Flush, after which a chunk waits
	return errors.Join(checkErr, b.seal(ctx, one))
}

// seal seals the log, which archives it, and notes in the archive up to which moment it has
// all writes.
func (b *Backups) seal(ctx context.Context, one Database) error {
	at := time.Now()
	if err := one.DB.Flush(ctx); err != nil {
		return err
	}
	stats, err := one.DB.Stats()
	if err != nil {
		return err
	}
	return b.writer.PutMark(ctx, one.Account, filepath.Join(b.Data, one.Account), stats.LastSequence, at)
}

// uncovered reports whether a database has writes that neither a backup nor the archive
// has, and that it will not archive: a command wrote them while no server had it, or it was
// restored. This is not known while chunks wait: writes before them can be missing.
func (b *Backups) uncovered(ctx context.Context, one Database) (missing, known bool, err error) {
	stats, err := one.DB.Stats()
	if err != nil || stats.ArchiveWaiting > 0 {
		return false, false, err
	}
	last, err := b.writer.Reaches(ctx, one.Account, filepath.Join(b.Data, one.Account))
	return last < one.Flushed, err == nil, err
}
