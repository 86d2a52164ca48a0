package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/store"
)

// retryBackup is the longest time from a failed backup to the next try.
const retryBackup = time.Minute

// backupState is what the server has done with --backup-dir.
type backupState struct {
	writer *backups.Writer // nil without the flag

	mu sync.Mutex // not held while the directory is read, which can take long: /metrics needs it
	// made and failed count backups of accounts, copied their bytes.
	made, failed, copied uint64 // +checklocks:mu
	// newest is the time of the newest backup by account, took how long the last backup of
	// all accounts took.
	newest map[string]time.Time // +checklocks:mu
	took   time.Duration        // +checklocks:mu
	// unchecked are accounts of which it is not known whether a backup or the archive has each write.
	unchecked map[string]bool // +checklocks:mu
	every     time.Duration
	wake      chan struct{} // signalled when accounts were added
}

// openBackups opens the directory of --backup-dir, if there is one.
func (s *service) openBackups(ctx context.Context) (err error) {
	if s.BackupDir == "" {
		return nil
	}
	s.backups.every, s.backups.wake = s.BackupEvery, make(chan struct{}, 1)
	if s.backups.writer, err = backups.NewWriter(ctx, s.BackupDir, s.Data); err == nil {
		s.open.archive, s.open.fork = s.backups.writer.Archive, s.backups.writer.Fork
	}
	return err
}

// noteBackups finds the newest backup of each account, at the start and when the accounts
// change. Those of an earlier epoch do not count: no later moment can be restored by them.
func (s *service) noteBackups(ctx context.Context) {
	if s.backups.writer == nil {
		return
	}
	b, dbs := &s.backups, s.dbs.local()
	b.mu.Lock()
	newest, unchecked := make(map[string]time.Time), make(map[string]bool)
	for _, one := range dbs {
		if at, ok := b.newest[one.name]; ok {
			newest[one.name], unchecked[one.name] = at, b.unchecked[one.name]
		}
	}
	b.newest, b.unchecked = newest, unchecked
	b.mu.Unlock()
	for _, one := range dbs {
		if b.knows(one.name) {
			continue
		}
		at, err := b.writer.Newest(ctx, one.name, filepath.Join(s.Data, one.name))
		if err != nil {
			s.log.Error("a backup cannot be read", "account", one.name, "err", advice(err))
		}
		if at.After(time.Now()) {
			at = time.Time{} // the clock was ahead
		}
		b.mu.Lock()
		b.newest[one.name] = at // zero if there is none
		b.unchecked[one.name] = true
		b.mu.Unlock()
		if err := s.checkArchive(ctx, one); err != nil {
			s.log.Error("the archive cannot be read", "account", one.name, "err", advice(err))
		}
	}
	b.signal()
}

// knows reports whether the newest backup of an account is known.
func (b *backupState) knows(account string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.newest[account]
	return ok
}

// signal lets backUp look at the times of the newest backups.
func (b *backupState) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// checkArchive makes a backup due if writes of a database are in neither a backup nor the
// archive: without it no moment up to the next one could be restored.
func (s *service) checkArchive(ctx context.Context, one database) error {
	b := &s.backups
	b.mu.Lock()
	unchecked := b.unchecked[one.name]
	b.mu.Unlock()
	if !unchecked {
		return nil
	}
	missing, known, err := s.uncovered(ctx, one)
	if err != nil || !known {
		return err
	}
	if missing {
		s.log.Info("writes are in neither a backup nor the archive: making a backup", "account", one.name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unchecked, one.name)
	if missing {
		b.newest[one.name] = time.Time{}
		b.signal()
	}
	return nil
}

// closeBackups lets other processes write to the directory.
func (s *service) closeBackups() error {
	if s.backups.writer == nil {
		return nil
	}
	return s.backups.writer.Close()
}

// startBackups starts the backups of --backup-dir. The function cancels the one under way
// and waits for its end.
func (s *service) startBackups(ctx context.Context) (end func()) {
	if s.backups.writer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.backUp(ctx)
	}()
	return func() { cancel(); <-done }
}

// backUp makes backups on a schedule until ctx ends.
func (s *service) backUp(ctx context.Context) {
	wait := s.untilBackup()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.backups.wake:
			if wait = s.untilBackup(); wait > 0 {
				continue
			}
		case <-time.After(wait):
		}
		good := s.backUpAll(ctx)
		if wait = s.untilBackup(); !good {
			wait = max(wait, min(s.BackupEvery, retryBackup))
		}
	}
}

// untilBackup returns the time until the oldest of the newest backups is due to be replaced.
func (s *service) untilBackup() time.Duration {
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	wait := s.BackupEvery
	for _, one := range s.admin.databases().local() {
		wait = min(wait, time.Until(s.backups.newest[one.name].Add(s.BackupEvery)))
	}
	return max(wait, 0)
}

// backUpAll backs up each account and removes old backups. It reports whether all of it
// succeeded.
func (s *service) backUpAll(ctx context.Context) bool {
	start, good := time.Now(), true
	b := &s.backups
	for _, one := range s.admin.databases().local() {
		// Those that are not due keep their old backups while another account fails.
		if !s.due(one) {
			continue
		}
		list, err := s.create(ctx, b.writer, []backups.Database{{Account: one.name, DB: one.db}}, func(string, int64, int64) {})
		if ctx.Err() != nil {
			return false // the server ends
		}
		b.note(list, err)
		if err == nil {
			s.log.Info("backup made", "account", one.name, "backup", list[0].ID, "bytes", list[0].Bytes, "copied", list[0].CopiedBytes)
			if _, err := b.writer.Prune(ctx, one.name, s.BackupKeep); err != nil && ctx.Err() == nil {
				s.log.Error("old backups are left", "account", one.name, "err", advice(err))
			}
		}
		if err != nil && ctx.Err() == nil {
			good = false
			s.log.Error("backup failed", "account", one.name, "err", advice(err))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took = time.Since(start)
	return good
}

// due reports whether the newest backup of an account is to be replaced.
func (s *service) due(one database) bool {
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	return time.Since(s.backups.newest[one.name]) >= s.BackupEvery
}

// note counts a backup.
func (b *backupState) note(list []backup.Info, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range list {
		b.made++
		b.copied += uint64(i.CopiedBytes)
		b.newest[i.Account] = time.Now() // i.Time is later if the clock was ahead
	}
	if err != nil {
		b.failed++
	}
}

// createBackup makes a backup for a command.
func (s *service) createBackup(ctx context.Context, dest, account string, progress backups.Progress) (list []backup.Info, err error) {
	if s.InMemory {
		return nil, errors.New("this server keeps its data in memory, which cannot be backed up; export the tables")
	}
	var dbs []backups.Database
	for _, one := range s.admin.databases().local() {
		if account == "" || account == one.name {
			dbs = append(dbs, backups.Database{Account: one.name, DB: one.db})
		}
	}
	if len(dbs) == 0 {
		return nil, fmt.Errorf("the server that has the directory does not serve the account %s", account)
	}
	w := s.backups.writer
	if w == nil || !sameDir(dest, s.BackupDir) {
		if w, err = backups.NewWriter(ctx, dest, s.Data); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		return s.create(ctx, w, dbs, progress)
	}
	list, err = s.create(ctx, w, dbs, progress)
	s.backups.note(list, err)
	return list, err
}

// create makes one backup at a time, because they share a directory for links.
func (s *service) create(ctx context.Context, w *backups.Writer, dbs []backups.Database, progress backups.Progress) ([]backup.Info, error) {
	select {
	case s.oneBackup <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.oneBackup }()
	return w.Create(ctx, s.Data, dbs, progress)
}

// sameDir reports whether two paths are of one directory, also by a link.
func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// serveBackup answers the request of a command for a backup.
func (s *service) serveBackup(w http.ResponseWriter, r *http.Request) {
	backups.Serve(w, r, func(ctx context.Context, dest, account string, progress backups.Progress) ([]backup.Info, error) {
		list, err := s.createBackup(ctx, dest, account, progress)
		log := s.log.With("dest", printable(dest), "backups", len(list))
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

// backupMetrics are the metrics of --backup-dir, without labels.
var backupMetrics = []struct {
	name, kind, help string
	value            func(*backupState) float64 // called with the lock
}{
	{"made_total", "counter", "Backups of an account that were made.", func(b *backupState) float64 { return float64(b.made) }},
	{"failures_total", "counter", "Backups of an account that failed.", func(b *backupState) float64 { return float64(b.failed) }},
	{"copied_bytes_total", "counter", "Bytes that backups copied; hard links are none.", func(b *backupState) float64 { return float64(b.copied) }},
	{"interval_seconds", "gauge", "Time from one backup to the next.", func(b *backupState) float64 { return b.every.Seconds() }},
	{"last_duration_seconds", "gauge", "Time that the last backup of all accounts took.", func(b *backupState) float64 { return b.took.Seconds() }},
}

const newestBackup = "tablerock_backup_last_success_timestamp_seconds"

func init() {
	for _, f := range backupMetrics {
		helpOf["tablerock_backup_"+f.name] = f.help
	}
	helpOf[newestBackup] = "Unix time of the newest backup of the account, 0 without one."
}

// write writes the metrics, if there is a --backup-dir.
func (b *backupState) write(w io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest == nil {
		return
	}
	for _, f := range backupMetrics {
		vm.WriteMetadataIfNeeded(w, "tablerock_backup_"+f.name, f.kind)
		fmt.Fprintf(w, "tablerock_backup_%s %s\n", f.name, formatFloat(f.value(b)))
	}
	vm.WriteMetadataIfNeeded(w, newestBackup, "gauge")
	for account, at := range b.newest {
		fmt.Fprintf(w, "%s{account=%q} %d\n", newestBackup, account, max(0, at.Unix()))
	}
}
