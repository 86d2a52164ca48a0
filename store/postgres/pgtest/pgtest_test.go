package pgtest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

func TestShared(t *testing.T) {
	s := pgtest.Shared(t)
	if a, b := s.NewDatabase(t), s.NewDatabase(t); a == b {
		t.Errorf("two databases have the URL %s", a)
	}
	if got := s.Exec(t, "SELECT 1", "SELECT n FROM generate_series(1, 3) n"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("rows: got %q", got)
	}
}

// TestKill tests that committed rows survive Kill, and that the other processes end too.
func TestKill(t *testing.T) {
	s := pgtest.Start(t, "max_connections=17")
	if got := s.Exec(t, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (42)", "SHOW max_connections"); !slices.Equal(got, []string{"17"}) {
		t.Errorf("max_connections: got %q, want 17", got)
	}
	if n := len(s.Processes()); n < 4 {
		t.Errorf("%d processes, want at least 4", n)
	}
	s.Kill(t)
	s.Restart(t)
	if got := s.Exec(t, "SELECT n FROM kept"); !slices.Equal(got, []string{"42"}) {
		t.Errorf("after Kill and Restart: got %q, want 42", got)
	}
}

// TestSetSynchronousStandbys tests that a commit waits for a standby that does not exist.
func TestSetSynchronousStandbys(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(t, "CREATE TABLE t (n int)")
	for range 3 {
		s.SetSynchronousStandbys(t, "nobody")
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Exec(t, "INSERT INTO t VALUES (1)")
		}()
		timeout := time.After(time.Minute)
		for len(s.Exec(t, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) == 0 {
			select {
			case <-done:
				t.Fatal("a commit did not wait for the standby")
			case <-timeout:
				t.Fatal("no commit waits")
			default:
			}
		}
		s.SetSynchronousStandbys(t, "")
		<-done
	}
}
