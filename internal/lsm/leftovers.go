package lsm

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
)

// leftovers returns the files with the name of an sstable and a header of this
// database that the manifest does not list.
func (t *Tree) leftovers() (found map[string]uint64, err error) {
	names, err := t.o.FS.List(t.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	v := t.Version()
	defer v.Unref()
	listed := make(map[uint64]bool)
	for _, s := range v.ssts() {
		listed[s.number] = true
	}
	found = make(map[string]uint64)
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind == filename.SSTable && !listed[number] && t.owns(name, number) {
			found[name] = number
		}
	}
	return found, nil
}

// CheckLeftovers compares the files of interrupted jobs with the last sequence and the
// last timestamp of manifest and logs. The input of a job is durable there before the
// job starts. So a newer entry in a file shows that the manifest or a log is an older
// copy, or that a log is missing.
func (t *Tree) CheckLeftovers(lastSeq uint64, highWater edm.Ticks) error {
	found, err := t.leftovers()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		number := found[name]
		f, err := t.o.FS.Open(t.path(number))
		if err != nil {
			return fmt.Errorf("check leftover: %w", err)
		}
		r, err := sstable.Open(f, sstable.ReaderOptions{DBID: t.dbid, Number: number, Name: name})
		if err != nil {
			_ = f.Close() // read-only
			continue      // the file was not finished
		}
		seq, stamp, err := r.Newest()
		if cerr := r.Close(); err == nil && cerr != nil {
			return cerr
		}
		if err == nil && (seq > lastSeq || stamp > highWater) {
			return corrupt.Newf(filename.Manifest, 56, "%s, which the manifest does not list, contains sequence %d of %v, but manifest and logs end at %d of %v: "+
				"the manifest or a log is outdated or missing", name, seq, stamp, lastSeq, highWater)
		}
	}
	return nil
}

// RemoveLeftovers removes the files of jobs that a crash interrupted, and no other
// files. Call it before the first job, after Open and CheckLeftovers succeeded: with an
// outdated manifest, the files of the newer manifest look like leftovers.
func (t *Tree) RemoveLeftovers() (removed []string, err error) {
	found, err := t.leftovers()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if err := t.o.FS.Remove(path.Join(t.o.Dir, name)); err != nil {
			return removed, fmt.Errorf("remove leftover: %w", err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// owns reports whether the header of a file has this database's id and the number. An
// unfinished file cannot be opened, but its header is valid: then the offset of the
// damage is not 0.
func (t *Tree) owns(name string, number uint64) bool {
	f, err := t.o.FS.Open(path.Join(t.o.Dir, name))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read-only
	_, err = sstable.Open(f, sstable.ReaderOptions{DBID: t.dbid, Number: number, Name: name})
	var damage *corrupt.Error
	return err == nil || errors.As(err, &damage) && damage.Offset > 0
}
