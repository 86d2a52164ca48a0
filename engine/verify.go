package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Report is the result of Verify.
type Report struct {
	Files    int   // read: sstables, log segments, the manifest
	Bytes    int64 // read, without those of the manifest
	Entities int64 // as in Stats
	Findings []Finding
	// Unknown has the names of files in the directory that do not belong to the
	// database. They are not damage.
	Unknown []string
}

// Finding is one damaged place of a file.
type Finding struct {
	File   string // its name in the directory
	Offset int64  // where the damaged bytes begin, 0 if that is not known
	What   string // what was found, and what was expected
}

// add adds err to the findings and reports true if it says that a file is damaged.
func (r *Report) add(file string, err error) bool {
	f := Finding{File: file, What: err.Error()}
	var c *corrupt.Error
	if errors.As(err, &c) {
		f = Finding{File: c.File, Offset: c.Offset, What: c.What}
	} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, vfs.ErrNotRegular) && !errors.Is(err, store.ErrNewerFormat) {
		return false
	}
	r.Findings = append(r.Findings, f)
	return true
}

// Verify reads every byte of the database on disk and checks it against checksums and the rules of the format. It checks the
// database as it is at the call; reads and writes continue meanwhile. Damage is in the Report and is not an error: the error
// says why Verify could not finish, and the Report has what was found by then.
func (db *DB) Verify(ctx context.Context) (Report, error) {
	return db.VerifyWithProgress(ctx, func(int64, int64) {})
}

// VerifyWithProgress is Verify, and calls progress in its goroutine with the bytes of sstables
// and logs that are read, and with all of them.
func (db *DB) VerifyWithProgress(ctx context.Context, progress func(done, total int64)) (Report, error) {
	snap := db.newSnapshot()
	if snap == nil {
		return Report{}, store.ErrClosed
	}
	defer snap.release()
	var r Report
	if _, err := manifest.Read(db.fs, db.dir); err != nil && !r.add(filename.Manifest, err) {
		return r, fmt.Errorf("verify: %w", err)
	}
	r.Files++
	total := snap.state.Version.Stats().Bytes + snap.state.MemStats().LogBytes
	found, err := snap.state.Version.Verify(ctx, func(bytes int64) { progress(bytes, total) })
	r.Files += found.Files
	r.Bytes += found.Bytes
	for _, f := range found.Findings {
		r.add(f.File, f)
	}
	if err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	for _, seg := range snap.state.Mems {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		// A segment that was flushed meanwhile has no file, or the next segment has
		// taken its file over.
		n, err := seg.Verify(db.fs, path.Join(db.dir, filename.Make(filename.WAL, seg.Number)))
		if n > 0 || err != nil {
			r.Files++
			r.Bytes += n
			progress(r.Bytes, total)
		}
		if err != nil {
			s := db.state.Load()
			if s == nil {
				return r, store.ErrClosed // and it is unknown whether it was flushed
			}
			now, merr := manifest.Read(db.fs, db.dir)
			flushed := db.opts.ReadOnly && merr == nil && now.LastSeq >= seg.LastSeq() // by a writer beside this reader
			if slices.Contains(s.Mems, seg) && !flushed && !r.add(filename.Make(filename.WAL, seg.Number), err) {
				return r, fmt.Errorf("verify: %w", err)
			}
		}
	}
	stats, err := db.Stats()
	if err != nil {
		return r, err
	}
	r.Entities = stats.Entities
	now := db.tree.Manifest()
	if r.Unknown, err = recovery.Unknown(db.fs, db.dir, &now); err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	return r, nil
}
