package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/jobs"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/sessions"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/upload"
	"github.com/tablerock-db/tablerock/internal/tempfile"
)

// begin returns sessions and jobs in a bubble of testing/synctest. They end with the test.
func begin(t *testing.T) (*sessions.Set, *jobs.Set) {
	logins := sessions.New(time.Now)
	s := jobs.New(time.Now, func(err error) any { return err.Error() })
	t.Cleanup(func() {
		logins.Close()
		s.Close()
	})
	return logins, s
}

func login(logins *sessions.Set, kind sessions.Kind) *sessions.Session {
	one := &sessions.Session{Kind: kind}
	logins.Begin(one)
	return one
}

// wait waits for the end of ctx.
func wait(ctx context.Context, _ *jobs.Job) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestEnd ends jobs in each way and looks at their states.
func TestEnd(t *testing.T) {
	full := errors.New("the disk is full")
	revoked := func(context.Context) error { return errors.New("revoked") }
	for _, c := range []struct {
		name           string
		task           jobs.Task
		cancel         bool
		state, failure any
		took           time.Duration
	}{
		{"done", jobs.Task{Work: func(context.Context, *jobs.Job) error { return nil }}, false, "done", nil, 0},
		{"failed", jobs.Task{Work: func(context.Context, *jobs.Job) error { return full }}, false, "failed", full.Error(), 0},
		{"canceled", jobs.Task{Work: wait}, true, "canceled", nil, 0},
		{"canceled by itself", jobs.Task{Work: func(context.Context, *jobs.Job) error { return context.Canceled }}, false, "failed", "context canceled", 0},
		{"refused by a check", jobs.Task{Work: wait, Check: revoked}, false, "failed", "revoked", time.Second},
		{"without a chunk", jobs.Task{Work: wait, Upload: upload.New(1)}, false, "canceled", nil, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logins, s := begin(t)
				one := login(logins, sessions.ByLink)
				c.task.Status.Table = "Tab"
				if c.task.Upload != nil {
					c.task.Upload = upload.New(1) // in the bubble
				}
				j, err := s.Start(one, c.task)
				if err != nil {
					t.Fatal(err)
				}
				if c.cancel {
					j.Cancel()
				}
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				d := j.Status()
				if j.IsRunning() || d.State != c.state || d.Failure != c.failure || d.Table != "Tab" || d.Ms != c.took.Milliseconds() {
					t.Errorf("%+v, want %v, %v after %v", d, c.state, c.failure, c.took)
				}
			})
		})
	}
}

// TestSessions finds jobs by their session only, and removes them when it ends.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins, s := begin(t)
		one, other := &sessions.Session{}, login(logins, sessions.ByLink)
		token := logins.Begin(one)
		var want []string
		for i := range 3 {
			j, err := s.Start(one, jobs.Task{Work: wait, Status: jobs.Status{Name: fmt.Sprint(i)}})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, j.ID)
			time.Sleep(time.Second)
		}
		list := func(of *sessions.Session) (ids []string) {
			for _, d := range s.List(of) {
				if j := s.Find(of, d.ID); j == nil || j.ID != d.ID || d.State != "running" {
					t.Errorf("job %s is %+v, found as %v", d.ID, d, j)
				}
				ids = append(ids, d.ID)
			}
			return ids
		}
		slices.Reverse(want)
		if diff := cmp.Diff(want, list(one)); diff != "" {
			t.Errorf("newest first (-want +got):\n%s", diff)
		}
		if s.Find(other, want[0]) != nil || len(list(other)) > 0 {
			t.Error("another session finds the jobs")
		}
		logins.End(token)
		synctest.Wait()
		if got := list(one); len(got) > 0 {
			t.Errorf("after the end of the session: %v", got)
		}
		if _, err := s.Start(one, jobs.Task{Work: wait}); err != jobs.ErrSessionEnded {
			t.Errorf("a job of a session that ended: %v", err)
		}
	})
}

// TestLimits limits the jobs that run. Sessions of signatures leave half of them to others.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins, s := begin(t)
		for _, kind := range []sessions.Kind{sessions.BySignature, sessions.ByKey} {
			one := login(logins, kind)
			for i := range 5 {
				_, err := s.Start(one, jobs.Task{Work: wait})
				if want := i == 4; want != (err == jobs.ErrTooMany) || !want && err != nil {
					t.Errorf("job %d of kind %v: %v", i, kind, err)
				}
			}
		}
	})
}

// TestResults keeps the result of a job for an hour, and of the last 100 jobs.
func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins, s := begin(t)
		one, files := login(logins, sessions.ByLink), tempfile.New(1<<20)
		export := func() *jobs.Job {
			j, err := s.Start(one, jobs.Task{Work: func(_ context.Context, j *jobs.Job) error {
				file, err := files.Create(0)
				if err == nil {
					_, err = io.WriteString(file, "text")
					j.SetFile(file, 7)
				}
				return err
			}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if d := j.Status(); d.State != "done" || d.Rows != 7 || d.Bytes != 4 || d.Size != 4 || j.File() == nil {
				t.Fatalf("the export is %+v, its file %v", d, j.File())
			}
			return j
		}
		first := export()
		time.Sleep(time.Minute)
		second := export()
		for range 99 {
			time.Sleep(time.Second)
			export()
		}
		for j, want := range map[*jobs.Job]bool{first: false, second: true} {
			if found := s.Find(one, j.ID) != nil; found != want || (j.File() != nil) != want {
				t.Errorf("after 100 jobs: found %v, file %v; want %v", found, j.File(), want)
			}
		}
		time.Sleep(time.Hour + time.Second)
		export()
		if s.Find(one, second.ID) != nil || second.File() != nil || len(s.List(one)) != 1 {
			t.Errorf("after an hour %d jobs are kept", len(s.List(one)))
		}
	})
}
