// Package leftovers finds the sstables that an interrupted job left in a directory.
package leftovers

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// Leftovers are files by their names, with their numbers.
type Leftovers struct {
	fs    vfs.FS
	dir   string
	dbid  [16]byte
	next  uint64
	files map[string]uint64
}

// Find returns the files in dir with the name of an sstable and a header of the
// database dbid whose number is not listed, and empty ones whose number is less than next:
// the database has used these numbers.
func Find(fsys vfs.FS, dir string, dbid [16]byte, listed map[uint64]bool, next uint64) (*Leftovers, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	l := &Leftovers{fs: fsys, dir: dir, dbid: dbid, next: next, files: make(map[string]uint64)}
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind != filename.SSTable || listed[number] {
			continue
		}
		owned, err := l.owns(name, number)
		if err != nil {
			return nil, fmt.Errorf("find leftovers: %w", err)
		}
		if owned {
			l.files[name] = number
		}
	}
	return l, nil
}

// Check returns a *corrupt.Error if a finished file has an entry above the last
// sequence number or the last Timestamp of manifest and logs. The input of a job is
// durable there before the job starts, or the manifest has reserved its sequence numbers and
// Timestamps, and the Timestamp of a load. So a newer entry in a file shows that the manifest
// or a log is an older copy, or that a log is missing. An error of the file system is returned: the
// file may have such an entry, and Remove would lose it.
func (l *Leftovers) Check(lastSeq uint64, highWater edm.Ticks) error {
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		seq, stamp, err := l.newest(name)
		if errors.Is(err, corrupt.ErrCorrupt) {
			continue // the file was not finished
		}
		if err != nil {
			return fmt.Errorf("check leftover: %w", err)
		}
		if seq > lastSeq || stamp > highWater {
			return corrupt.Newf(filename.Manifest, 56, "%s, which the manifest does not list, contains sequence %d of %v, but manifest and logs end at %d of %v: "+
				"the manifest or a log is outdated or missing", name, seq, stamp, lastSeq, highWater)
		}
	}
	return nil
}

// newest returns the greatest sequence number and the latest Timestamp in a file.
func (l *Leftovers) newest(name string) (seq uint64, stamp edm.Ticks, err error) {
	f, err := l.fs.Open(path.Join(l.dir, name))
	if err != nil {
		return 0, 0, err
	}
	r, err := sstable.Open(f, sstable.ReaderOptions{DBID: l.dbid, Number: l.files[name], Name: name})
	if err != nil {
		_ = f.Close() // read-only
		return 0, 0, err
	}
	seq, stamp, err = r.Newest()
	return seq, stamp, errors.Join(err, r.Close())
}

// Remove removes the files.
func (l *Leftovers) Remove() (removed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		if err := l.fs.Remove(path.Join(l.dir, name)); err != nil {
			return removed, fmt.Errorf("remove leftover: %w", err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// owns reports whether the header of a file has the database's id and the number. An
// unfinished file cannot be opened, but its header is valid: then the offset of the
// damage is not 0. Nothing is lost with an empty file, which a process left that was killed
// before it wrote the header. A file that cannot be opened, or that a later build wrote, is left alone.
func (l *Leftovers) owns(name string, number uint64) (bool, error) {
	f, err := l.fs.Open(path.Join(l.dir, name))
	if err != nil {
		return false, nil
	}
	defer func() { _ = f.Close() }() // read-only
	if size, err := f.Size(); err == nil && size == 0 {
		return number < l.next, nil
	}
	_, err = sstable.Open(f, sstable.ReaderOptions{DBID: l.dbid, Number: number, Name: name})
	var damage *corrupt.Error
	switch {
	case errors.As(err, &damage):
		return damage.Offset > 0, nil
	case errors.Is(err, sstable.ErrNewerFormat):
		return false, nil
	}
	return err == nil, err
}
