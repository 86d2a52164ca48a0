package engine

import (
	"errors"
	"fmt"
	"path"
	"reflect"

	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/wal"
)

// readOnlyAttempts is how often a view beside a writer begins anew because the
// files changed under it.
const readOnlyAttempts = 10

// openReadOnly opens the database as it is at this moment and changes no byte of
// it. Beside a live writer it shows only what a sync is known to have covered;
// what the writer acknowledged in the last moments may be missing. Without one
// it first has the log synced and then shows all of it.
func openReadOnly(dir string, o Options) (*DB, error) {
	var err error
	for range readOnlyAttempts {
		var db *DB
		var again bool
		if db, again, err = tryReadOnly(dir, o); err == nil {
			return db, nil
		}
		if !again {
			break
		}
	}
	return nil, fmt.Errorf("open %s for reading: %w", dir, err)
}

// tryReadOnly is one attempt; again says that it failed because a writer moved
// files meanwhile.
func tryReadOnly(dir string, o Options) (db *DB, again bool, err error) {
	m, err := readManifest(o.FS, dir)
	if err != nil {
		return nil, false, err
	}
	db = newDB(dir, o, m)
	opened := false
	defer func() {
		if err != nil {
			again = errors.Is(err, wal.ErrChanged) || db.moved(m)
			if opened {
				err = errors.Join(err, db.discard())
			}
			db = nil
		}
	}()
	if err = db.openTree(m); err != nil {
		return db, false, err
	}
	opened = true
	if err = db.view(m); err != nil {
		return db, false, err
	}
	if db.moved(m) {
		err = errors.New("the writer keeps changing the files")
		return db, true, err
	}
	db.startWorker()
	return db, false, nil
}

// checkLeftovers is lsm.Tree.CheckLeftovers. A writer that has come meanwhile
// makes files that neither manifest nor log knew of.
func (db *DB) checkLeftovers(log *recovery.Log) error {
	err := db.tree.CheckLeftovers(log.LastSeq, log.HighWater)
	if err == nil {
		return nil
	}
	if _, live, lerr := db.fs.Locked(path.Join(db.dir, filename.Lock)); lerr != nil || live {
		return errors.Join(wal.ErrChanged, err, lerr)
	}
	return err
}

// moved reports whether the manifest is another one than m.
func (db *DB) moved(m *manifest.Manifest) bool {
	now, err := readManifest(db.fs, db.dir)
	return err == nil && !reflect.DeepEqual(now, m)
}

// view replays the log without touching it and makes the result the state.
func (db *DB) view(m *manifest.Manifest) error {
	mode := recovery.Idle
	if _, live, err := db.fs.Locked(path.Join(db.dir, filename.Lock)); err != nil {
		return err
	} else if live {
		mode = recovery.Beside
	}
	log, err := recovery.Read(db.fs, db.dir, m, mode)
	if err != nil {
		return err
	}
	if mode == recovery.Idle {
		if err := db.checkLeftovers(log); err != nil {
			log.Free()
			return err
		}
	}
	if err := db.start(log); err != nil {
		log.Free()
		return err
	}
	return db.loadCatalog()
}
