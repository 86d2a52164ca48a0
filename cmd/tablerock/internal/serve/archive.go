package serve

import (
	"context"
	"errors"
	"path/filepath"
	"time"
)

// startArchive archives the log of each database every ArchiveEvery, so that a restore can
// reach each moment but the last ones. The function ends that: call it when no request is under
// way, so that a restore can reach the end of the server, for accounts without late writes too.
func (s *service) startArchive(ctx context.Context) (end func()) {
	if s.backups.writer == nil {
		return func() {}
	}
	last := context.WithoutCancel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	done, all := make(chan struct{}), make(map[string]database)
	go func() {
		defer close(done)
		tick := time.NewTicker(s.ArchiveEvery)
		defer tick.Stop()
		for {
			s.archiveAll(ctx, all)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done; s.archiveAll(last, all) }
}

// archiveAll archives the databases that are served, which it adds to all, and those of all:
// an account that is no longer served can have writes that are not archived yet, and requests
// under way.
func (s *service) archiveAll(ctx context.Context, all map[string]database) {
	for _, one := range s.admin.databases().local() {
		all[one.name] = one
	}
	for _, one := range all {
		if err := s.archive(ctx, one); err != nil && ctx.Err() == nil {
			s.log.Error("archiving failed", "account", one.name, "err", advice(err))
		}
	}
}

// archive makes a backup due if one is needed before the archive can go on, and seals the log.
func (s *service) archive(ctx context.Context, one database) error {
	checkErr := s.checkArchive(ctx, one) // before Flush, after which a chunk waits
	return errors.Join(checkErr, s.seal(ctx, one))
}

// seal seals the log, which archives it, and notes in the archive up to which moment it has
// all writes.
func (s *service) seal(ctx context.Context, one database) error {
	at := time.Now()
	if err := one.db.Flush(ctx); err != nil {
		return err
	}
	stats, err := one.db.Stats()
	if err != nil {
		return err
	}
	return s.backups.writer.PutMark(ctx, one.name, filepath.Join(s.Data, one.name), stats.LastSequence, at)
}

// uncovered reports whether a database has writes that neither a backup nor the archive
// has, and that it will not archive: a command wrote them while no server had it, or it was
// restored. This is not known while chunks wait: writes before them can be missing.
func (s *service) uncovered(ctx context.Context, one database) (missing, known bool, err error) {
	stats, err := one.db.Stats()
	if err != nil || stats.ArchiveWaiting > 0 {
		return false, false, err
	}
	last, err := s.backups.writer.Reaches(ctx, one.name, filepath.Join(s.Data, one.name))
	return last < one.flushed, err == nil, err
}
