// Package schedule makes the backups of a running server: those of its backup directory, on a
// schedule, with the archive of the log between them, and one whenever a command asks for it.
//
// Each moment from the oldest backup on can be restored if each write is in a backup or in the
// archive. A database can have writes that are in neither: a command wrote them while no server
// had it, or it was restored. Then a backup is due at once.
//
// The methods of Backups may be called concurrently. Call Start once, and Close after its end.
package schedule

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/logtext"
	"github.com/tablerock-db/tablerock/engine"
)

// retryBackup is the longest time from a failed backup to the next try.
const retryBackup = time.Minute

// Options configure Backups.
type Options struct {
	Dir          string            // the backup directory, "" for none: then only commands get backups
	Data         string            // the data directory, with one directory for each account
	Every        time.Duration     // from one backup to the next
	Keep         int               // backups of each account
	ArchiveEvery time.Duration     // the longest time after which a write is in the archive
	Databases    func() []Database // in Data that are served; may be called concurrently
	Log          *slog.Logger
}

// Database is an open database.
type Database struct {
	backups.Database
	// Flushed is the last sequence number that was in sstables when the database was opened. With
	// an archive, what is flushed later is archived.
	Flushed uint64
}

// Backups makes the backups of a server.
type Backups struct {
	Options
	writer *backups.Writer // nil without a backup directory
	one    chan struct{}   // has an element while a backup is made
	wake   chan struct{}   // has an element when a backup can be due earlier

	mu sync.Mutex // not held while the directory is read, which can take long: /metrics needs it
	// made and failed count backups of accounts, copied their bytes.
	made, failed, copied uint64 // +checklocks:mu
	// newest is the time of the newest backup by account, took how long the last backup of
	// all accounts took.
	newest map[string]time.Time // +checklocks:mu
	took   time.Duration        // +checklocks:mu
	// unchecked are accounts of which it is not known whether a backup or the archive has each write.
	unchecked map[string]bool // +checklocks:mu
}

// Open locks the backup directory, if there is one, and makes it if it does not exist.
func Open(ctx context.Context, o Options) (*Backups, error) {
	b := &Backups{Options: o, one: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	if o.Dir == "" {
		return b, nil
	}
	var err error
	b.writer, err = backups.NewWriter(ctx, o.Dir, o.Data)
	return b, err
}

// Close lets other processes write to the directory.
func (b *Backups) Close() error {
	if b.writer == nil {
		return nil
	}
	return b.writer.Close()
}

// Archive returns the archive of an account. Call it only with a backup directory.
func (b *Backups) Archive(account string) engine.Archive { return b.writer.Archive(account) }

// Fork gives the database of an account in dir a new epoch, and reports so, if the directory has
// later writes of its epoch: the database is an older copy. Call it only with a backup directory,
// and before the database is opened.
func (b *Backups) Fork(ctx context.Context, account, dir string) (bool, error) {
	return b.writer.Fork(ctx, account, dir)
}

// Start starts the schedule, if there is a backup directory. The function cancels the backup
// under way, waits for its end, and archives the logs once more: call it when no request is under
// way, so that a restore can reach the end of the server.
func (b *Backups) Start(ctx context.Context) (end func()) {
	if b.writer == nil {
		return func() {}
	}
	endArchive, endBackups := b.startArchive(ctx), b.startBackups(ctx)
	return func() { endBackups(); endArchive() }
}

// startBackups starts the backups. The function cancels the one under way and waits for its
// end.
func (b *Backups) startBackups(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.backUp(ctx)
	}()
	return func() { cancel(); <-done }
}

// Note finds the newest backup of each database in dbs, those that are served. Call it when the
// databases are open, and when others are served. Backups of an earlier epoch do not count: no
// later moment can be restored by them.
func (b *Backups) Note(ctx context.Context, dbs []Database) {
	if b.writer == nil {
		return
	}
	b.mu.Lock()
	newest, unchecked := make(map[string]time.Time), make(map[string]bool)
	for _, one := range dbs {
		if at, ok := b.newest[one.Account]; ok {
			newest[one.Account], unchecked[one.Account] = at, b.unchecked[one.Account]
		}
	}
	b.newest, b.unchecked = newest, unchecked
	b.mu.Unlock()
	for _, one := range dbs {
		if b.knows(one.Account) {
			continue
		}
		at, err := b.writer.Newest(ctx, one.Account, filepath.Join(b.Data, one.Account))
		if err != nil {
			b.Log.Error("a backup cannot be read", "account", one.Account, "err", logtext.Advice(err))
		}
		b.mu.Lock()
		b.newest[one.Account] = onTimer(at) // zero if there is none
		b.unchecked[one.Account] = true
		b.mu.Unlock()
		if err := b.checkArchive(ctx, one); err != nil {
			b.Log.Error("the archive cannot be read", "account", one.Account, "err", logtext.Advice(err))
		}
	}
	b.signal()
}

// onTimer returns at, the time of a backup, with a reading of the monotonic clock, so that a clock that is set back later
// does not put off the next backup. It returns the zero time if at is zero or in the future: the clock was ahead.
func onTimer(at time.Time) time.Time {
	now := time.Now()
	if at.IsZero() || at.After(now) {
		return time.Time{}
	}
	return now.Add(at.Sub(now))
}

// knows reports whether the newest backup of an account is known.
func (b *Backups) knows(account string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.newest[account]
	return ok
}

// signal lets backUp look at the times of the newest backups.
func (b *Backups) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// checkArchive makes a backup due if writes of a database are in neither a backup nor the
// archive: without it no moment up to the next one could be restored.
func (b *Backups) checkArchive(ctx context.Context, one Database) error {
	b.mu.Lock()
	unchecked := b.unchecked[one.Account]
	b.mu.Unlock()
	if !unchecked {
		return nil
	}
	missing, known, err := b.uncovered(ctx, one)
	if err != nil || !known {
		return err
	}
	if missing {
		b.Log.Info("writes are in neither a backup nor the archive: making a backup", "account", one.Account)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unchecked, one.Account)
	if missing {
		b.newest[one.Account] = time.Time{}
		b.signal()
	}
	return nil
}

// backUp makes backups on a schedule until ctx ends.
func (b *Backups) backUp(ctx context.Context) {
	wait := b.untilBackup()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			if wait = b.untilBackup(); wait > 0 {
				continue
			}
		case <-time.After(wait):
		}
		good := b.backUpAll(ctx)
		if wait = b.untilBackup(); !good {
			wait = max(wait, min(b.Every, retryBackup))
		}
	}
}

// untilBackup returns the time until the oldest of the newest backups is due to be replaced.
func (b *Backups) untilBackup() time.Duration {
	dbs := b.Databases()
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.Every
	for _, one := range dbs {
		wait = min(wait, time.Until(b.newest[one.Account].Add(b.Every)))
	}
	return max(wait, 0)
}

// backUpAll backs up each account and removes old backups. It reports whether all of it
// succeeded.
func (b *Backups) backUpAll(ctx context.Context) bool {
	start, good := time.Now(), true
	for _, one := range b.Databases() {
		// Those that are not due keep their old backups while another account fails.
		if !b.due(one) {
			continue
		}
		list, err := b.create(ctx, b.writer, []backups.Database{one.Database}, func(string, int64, int64) {})
		if ctx.Err() != nil {
			return false // the server ends
		}
		b.note(1, list)
		if err == nil {
			b.Log.Info("backup made", "account", one.Account, "backup", list[0].ID, "bytes", list[0].Bytes, "copied", list[0].CopiedBytes)
			if _, err := b.writer.Prune(ctx, one.Account, b.Keep); err != nil && ctx.Err() == nil {
				b.Log.Error("old backups are left", "account", one.Account, "err", logtext.Advice(err))
			}
		}
		if err != nil && ctx.Err() == nil {
			good = false
			b.Log.Error("backup failed", "account", one.Account, "err", logtext.Advice(err))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took = time.Since(start)
	return good
}

// due reports whether the newest backup of an account is to be replaced.
func (b *Backups) due(one Database) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.newest[one.Account]) >= b.Every
}

// note counts the backups of list, of as many accounts.
func (b *Backups) note(accounts int, list []backup.Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range list {
		b.made++
		b.copied += uint64(i.CopiedBytes)
		b.newest[i.Account] = time.Now() // i.Time is later if the clock was ahead
	}
	b.failed += uint64(accounts - len(list))
}
