package engine

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"reflect"

	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/wal"
)

// readOnlyAttempts is how often openReadOnly tries beside a writer that changes the
// files meanwhile.
const readOnlyAttempts = 10

// openReadOnly opens the database as it is now and changes no byte of it. Beside a
// live writer it shows only records that a sync is known to have covered, and waits
// for the proof of the last ones: they are missing if the writer does not give it
// within recovery.maxProofWait. Without a writer it syncs the log and shows all of it.
func openReadOnly(dir string, o Options) (*DB, error) {
	var err error
	for i := range readOnlyAttempts {
		proven := true
		_, live, lerr := o.FS.Locked(path.Join(dir, filename.Lock))
		if lerr != nil {
			return nil, fmt.Errorf("open %s for reading: %w", dir, lerr)
		}
		if live {
			proven = recovery.AwaitProof(o.FS, dir, o.Testing.Clock.AfterFunc)
		}
		var db *DB
		var again bool
		if db, again, err = tryReadOnly(dir, o); err == nil {
			db.logOpened(i)
			if !proven {
				o.Logger.Warn("the newest writes may be missing: the process that has the database does not confirm that they are durable", "dir", dir)
			}
			return db, nil
		}
		if !again {
			break
		}
	}
	return nil, fmt.Errorf("open %s for reading: %w", dir, err)
}

// tryReadOnly is one attempt. again says that it failed because a writer changed
// the files meanwhile.
func tryReadOnly(dir string, o Options) (db *DB, again bool, err error) {
	m, err := manifest.Read(o.FS, dir)
	if err != nil {
		return nil, false, cmp.Or(manifest.Lost(o.FS, dir), err)
	}
	db = newDB(dir, o, m)
	opened := false
	defer func() {
		if err != nil {
			again = again || errors.Is(err, wal.ErrChanged) || db.changed(m)
			if opened {
				err = errors.Join(err, db.discard())
			}
			db = nil
		}
	}()
	if db.tree, err = lsm.Open(db.treeOptions(), m); err != nil {
		return db, false, err
	}
	opened = true
	if err = db.replay(m); err != nil {
		return db, false, err
	}
	if db.changed(m) {
		err = errors.New("the writer keeps changing the files")
		return db, true, err
	}
	db.startWorker()
	return db, false, nil
}

// checkIdle checks a log that was read with the error err as one without a writer. Its error is
// wal.ErrChanged if a writer has opened the database meanwhile: its files look like leftovers, and
// its newest records may not be durable.
func (db *DB) checkIdle(log *recovery.Log, err error) error {
	if err == nil {
		err = db.tree.CheckLeftovers(log.LastSeq, log.HighWater)
	}
	if _, live, lerr := db.fs.Locked(path.Join(db.dir, filename.Lock)); lerr != nil || live {
		return errors.Join(wal.ErrChanged, err, lerr)
	}
	if err == nil {
		log.WarnLost(db.opts.Logger)
	}
	return err
}

// changed reports whether the manifest on disk differs from m, or cannot be read: then the files can
// be those of another one.
func (db *DB) changed(m *manifest.Manifest) bool {
	now, err := manifest.Read(db.fs, db.dir)
	return err != nil || !reflect.DeepEqual(now, m)
}

// replay replays the log without changing it and installs the read state.
func (db *DB) replay(m *manifest.Manifest) error {
	mode := recovery.Idle
	if _, live, err := db.fs.Locked(path.Join(db.dir, filename.Lock)); err != nil {
		return err
	} else if live {
		mode = recovery.Beside
	}
	log, err := recovery.Read(db.fs, db.dir, m, mode)
	if mode == recovery.Idle {
		err = db.checkIdle(log, err)
	}
	if err != nil {
		log.Free()
		return err
	}
	if err := db.start(log); err != nil {
		log.Free()
		return err
	}
	return db.loadCatalog()
}
