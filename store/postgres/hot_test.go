package postgres

import (
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestUpsertsOfHotKey upserts a batch whose last key others overwrite all the time. Each try of the
// batch takes longer than the others need.
func TestUpsertsOfHotKey(t *testing.T) {
	t.Parallel()
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
	s.makeTable(t)
	s.apply(t, store.Insert(one("a", 1)), store.Insert(one("hot", 1)))
	s.run(t, `CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN new; END';
		CREATE TRIGGER delay BEFORE UPDATE ON tr_entities FOR EACH ROW WHEN (old.r = 'a') EXECUTE FUNCTION delay()`)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := s.Apply(t.Context(), people, store.InsertOrReplace(one("hot", 2))); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 3 {
		if _, err := s.Apply(t.Context(), people, store.InsertOrReplace(one("a", 3)), store.InsertOrReplace(one("hot", 3))); err != nil {
			t.Errorf("a batch with a key that others write: %v", err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestBaseRaisedInEachWait overwrites an entity while each statement that is a transaction by itself fails as
// if the base of Timestamps had been raised while it waited for the entity. A longer queue for one entity
// than the time between two beats does so.
func TestBaseRaisedInEachWait(t *testing.T) {
	t.Parallel()
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
	s.makeTable(t)
	s.apply(t, store.Insert(one("a", 1)))
	// SELECT FOR UPDATE holds this lock.
	s.run(t, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		IF NOT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'tr_entities'::regclass AND mode = 'RowShareLock')
		THEN RAISE division_by_zero; END IF; RETURN new; END$$;
		CREATE TRIGGER fail BEFORE UPDATE ON tr_entities FOR EACH ROW EXECUTE FUNCTION fail()`)
	for name, ops := range map[string][]store.Op{
		"upsert":  {store.InsertOrReplace(one("a", 2))},
		"replace": {store.Replace(one("a", 2), store.Any)},
		"upserts": {store.InsertOrReplace(one("a", 2)), store.InsertOrReplace(one("b", 2))},
	} {
		if _, err := s.Apply(t.Context(), people, ops...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
