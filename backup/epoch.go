package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"math"
	"path"
	"strings"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	dbmanifest "github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// Fork gives the database in dir a new epoch, and reports so, if backups or archive of its
// epoch have later writes than the database: it is an older copy, as a checkpoint that was put
// in the place of the data. Without that, a restore would take the writes of the archive for
// those that follow in the copy. Call it before the database is opened with an archive. A
// database that does not exist is none. A damaged backup counts only by what the archive has after it.
// After an error, do not open the database with an archive.
func (r *Repository) Fork(ctx context.Context, account string, fsys vfs.FS, dir string) (forked bool, err error) {
	if err := checkAccount(account); err != nil {
		return false, err
	}
	m, err := dbmanifest.Read(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	stored, err := r.greatest(ctx, account, m)
	if err != nil || stored <= m.LastSeq {
		return false, err
	}
	last, err := lastSequence(fsys, dir)
	if err != nil || stored <= last {
		return false, err
	}
	lock, err := fsys.Lock(path.Join(dir, filename.Lock))
	if err != nil {
		return false, err
	}
	err = r.raiseEpoch(ctx, account, fsys, dir)
	return err == nil, errors.Join(err, lock.Close())
}

// greatest returns the greatest sequence number that backups and archive have of a database
// and its epoch.
func (r *Repository) greatest(ctx context.Context, account string, m *dbmanifest.Manifest) (uint64, error) {
	seq, chunks, err := r.stored(ctx, account, m)
	for _, chunk := range chunks {
		seq = max(seq, chunk.Last)
	}
	return seq, err
}

// stored returns what backups and archive have of a database and its epoch: the last sequence
// number of the backups, 0 if there are none, and the chunks of the archive.
func (r *Repository) stored(ctx context.Context, account string, m *dbmanifest.Manifest) (last uint64, chunks []archive.Range, err error) {
	list, err := r.readable(ctx, account)
	if err != nil {
		return 0, nil, err
	}
	for _, i := range list {
		if i.Database == m.DBID && i.Epoch == m.Epoch {
			last = max(last, i.LastSequence)
		}
	}
	prefix := path.Join(account, archiveDir) + "/" + archive.Prefix(m.Epoch, m.DBID)
	objects, err := r.target.List(ctx, prefix)
	for _, object := range objects {
		if _, chunk, ok := archive.ParseName(strings.TrimPrefix(object.Name, prefix)); ok {
			chunks = append(chunks, chunk)
		}
	}
	return last, chunks, err
}

// lastSequence returns the last sequence number of a database that nobody has open.
func lastSequence(fsys vfs.FS, dir string) (uint64, error) {
	db, err := engine.Open(dir, engine.Options{FS: fsys, ReadOnly: true, SegmentBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	stats, err := db.Stats()
	return stats.LastSequence, errors.Join(err, db.Close())
}

// raiseEpoch gives the database in dir an epoch that the backup directory does not have.
func (r *Repository) raiseEpoch(ctx context.Context, account string, fsys vfs.FS, dir string) error {
	greatest, err := r.maxEpoch(ctx, account)
	if err != nil {
		return err
	}
	m, err := dbmanifest.Read(fsys, dir)
	if err != nil {
		return err
	}
	if m.Epoch = max(m.Epoch, greatest); m.Epoch == math.MaxUint64 {
		return corrupt.Newf(account+"/"+archiveDir, 0, "epoch %d, which no other can follow", m.Epoch)
	}
	m.Epoch++
	m.Version = 0 // the present one, which has an epoch
	if err := m.SkipNumbers(rand.Reader); err != nil {
		return err
	}
	return dbmanifest.Write(fsys, dir, m)
}
