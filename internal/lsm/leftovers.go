package lsm

import (
	"errors"
	"fmt"
	"path"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/sstable"
)

// RemoveLeftovers removes the files of jobs that a crash cut short: those with
// the name of a sorted file whose header says that they are this database's, and
// that the manifest does not list. Other files are left alone. It must be called
// before the first job, and only once everything that the manifest lists was
// found, logs included: beside an outdated manifest, the files of a newer one
// look like leftovers.
func (t *Tree) RemoveLeftovers() (removed []string, err error) {
	names, err := t.o.FS.List(t.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	v := t.Version()
	defer v.Unref()
	listed := make(map[string]bool)
	for _, p := range v.parts() {
		listed[fileName(p.number)] = true
	}
	for _, name := range names {
		var number uint64
		if n, _ := fmt.Sscanf(name, "%d.sst", &number); n != 1 || fileName(number) != name || listed[name] || !t.owns(name, number) {
			continue
		}
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
