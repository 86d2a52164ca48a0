package archiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/engine/internal/checkpoint"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/wal"
)

func (a *Archiver) loadDir(seq uint64) string {
	return path.Join(a.o.Dir, filename.Make(filename.Load, seq))
}

// Link keeps the files that Load is about to install under one sequence number. Call
// Installed or Cancel next.
func (a *Archiver) Link(files []manifest.File) error {
	if a.o.Archive == nil {
		return nil
	}
	f := &files[0]
	m := manifest.Manifest{DBID: a.o.DBID, Epoch: a.o.Epoch, HighWater: f.Stamp, LastSeq: f.MaxSeq, Files: files}
	for i := range files {
		m.NextFile = max(m.NextFile, files[i].Number+1)
	}
	dir := a.loadDir(f.MaxSeq)
	err := checkpoint.Make(a.o.FS, dir)
	if err == nil {
		err = checkpoint.Write(context.Background(), a.o.FS, a.o.Dir, dir, nil, &m)
	}
	if err != nil {
		return fmt.Errorf("keep the files for the archive: %w", err)
	}
	return nil
}

// Installed archives the files of Link.
func (a *Archiver) Installed(seq uint64) {
	if a.o.Archive == nil {
		return
	}
	p := chunk{seq: seq, load: true}
	if m, err := manifest.Read(a.o.FS, a.loadDir(seq)); err == nil {
		p.bytes = size(m)
	}
	a.add(p)
}

func size(m *manifest.Manifest) (bytes int64) {
	for i := range m.Files {
		bytes += m.Files[i].Size
	}
	return bytes
}

// Cancel removes what Link kept, because the files are not installed. After an error, no
// write may get the sequence number.
func (a *Archiver) Cancel(seq uint64) error {
	if a.o.Archive == nil {
		return nil
	}
	return a.removeLoad(seq)
}

// removeLoad removes the directory of a load. Its manifest is removed last: a directory
// with a manifest and without one of its files is archived already.
func (a *Archiver) removeLoad(seq uint64) error {
	dir := a.loadDir(seq)
	names, err := a.o.FS.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != filename.Manifest {
			err = errors.Join(err, a.o.FS.Remove(path.Join(dir, name)))
		}
	}
	if err = errors.Join(err, a.o.FS.SyncDir(dir)); err != nil {
		return err
	}
	if slices.Contains(names, filename.Manifest) {
		if err := a.o.FS.Remove(path.Join(dir, filename.Manifest)); err != nil {
			return err
		}
	}
	if err := a.o.FS.Remove(dir); err != nil {
		return err
	}
	return a.o.FS.SyncDir(a.o.Dir)
}

// Recover finds what waits after a crash, in the directory of the database with the
// manifest m, and removes the rest. Without an archive it removes everything that could
// wait.
func (a *Archiver) Recover(m *manifest.Manifest) error {
	names, err := a.o.FS.List(a.o.Dir)
	if err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	for _, name := range names {
		if kind, seq := filename.Parse(name); kind == filename.Load {
			if err := a.recoverLoad(seq, m); err != nil {
				return fmt.Errorf("recover %s: %w", name, err)
			}
		}
	}
	if a.o.Archive == nil {
		return recovery.RemoveStale(a.o.FS, a.o.Dir, m)
	}
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind != filename.WAL || len(m.Logs) == 0 || number >= m.Logs[0].Number {
			continue
		}
		info, err := wal.Inspect(a.o.FS, path.Join(a.o.Dir, name), a.o.DBID, number)
		switch {
		case err == nil && info.Records:
			a.add(chunk{seq: info.Header.FirstSeq, segment: commitlog.Released{Number: number}, bytes: info.Bytes})
		case recovery.Stale(a.o.FS, path.Join(a.o.Dir, name), err):
			// Only an archived segment is reused.
			if err := a.o.FS.Remove(path.Join(a.o.Dir, name)); err != nil {
				return fmt.Errorf("remove stale segment: %w", err)
			}
		default:
			a.o.Logger.Error("a segment cannot be read and is missing in the archive: open the database again, or make a backup",
				"dir", a.o.Dir, "chunk", name, "cause", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.waiting, func(p, q chunk) int { return cmp.Compare(p.seq, q.seq) })
	return nil
}

// recoverLoad adds the load with the sequence number seq if it was installed and is not
// archived.
func (a *Archiver) recoverLoad(seq uint64, m *manifest.Manifest) error {
	listed, err := manifest.Read(a.o.FS, a.loadDir(seq))
	if errors.Is(err, fs.ErrNotExist) || err == nil && (seq > m.LastSeq || a.o.Archive == nil) {
		return a.removeLoad(seq)
	}
	if err != nil {
		a.o.Logger.Error("a load is missing in the archive: make a backup", "dir", a.loadDir(seq), "cause", err)
		return nil
	}
	for i := range listed.Files {
		name := filename.Make(filename.SSTable, listed.Files[i].Number)
		if _, err := a.o.FS.Stat(path.Join(a.loadDir(seq), name)); errors.Is(err, fs.ErrNotExist) {
			return a.removeLoad(seq)
		}
	}
	a.add(chunk{seq: seq, load: true, bytes: size(listed)})
	return nil
}
