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

// leftovers returns the files that have the name of a sorted file and a header
// that says that they are this database's, and that the manifest does not list.
func (t *Tree) leftovers() (found map[string]uint64, err error) {
	names, err := t.o.FS.List(t.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	v := t.Version()
	defer v.Unref()
	listed := make(map[uint64]bool)
	for _, p := range v.parts() {
		listed[p.number] = true
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

// CheckLeftovers holds what jobs have left that were cut short against the last
// sequence and the last time stamp that manifest and logs know of. What a job
// reads is durable in both before it begins: a file with something newer shows
// that one of them was put back to what it once was, or that a log is gone.
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
			_ = f.Close() // only read from
			continue      // it was never finished
		}
		seq, stamp, err := r.Newest()
		if cerr := r.Close(); err == nil && cerr != nil {
			return cerr
		}
		if err == nil && (seq > lastSeq || stamp > highWater) {
			return corrupt.Newf(filename.Manifest, 56, "%s, which it does not list, holds sequence %d of %v, but manifest and logs end at %d of %v: "+
				"either is not what it was", name, seq, stamp, lastSeq, highWater)
		}
	}
	return nil
}

// RemoveLeftovers removes the files of jobs that a crash cut short. Other files
// are left alone. It must be called before the first job, and only once
// everything that the manifest lists was found and CheckLeftovers was content:
// beside an outdated manifest, the files of a newer one look like leftovers.
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

// owns reports whether the header of a file is that of this database and
// number. A file that was cut short opens no further than its header: then the
// damage is behind offset 0.
func (t *Tree) owns(name string, number uint64) bool {
	f, err := t.o.FS.Open(path.Join(t.o.Dir, name))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	_, err = sstable.Open(f, sstable.ReaderOptions{DBID: t.dbid, Number: number, Name: name})
	var damage *corrupt.Error
	return err == nil || errors.As(err, &damage) && damage.Offset > 0
}
