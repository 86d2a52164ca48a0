// Package jobs runs work in the background of sessions and keeps its results.
//
// A job ends with its session, when it is canceled, when a Task.Check fails, and when the upload
// that it reads gets no chunk for too long. It can be found by its session until that ends, but
// not longer than an hour after the end of the job, or than there are 100 later ones.
//
// The lock of a Set comes before that of a Job. Neither is held while work, a check or the
// removal of a file runs.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/sessions"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/upload"
	"github.com/tablerock-db/tablerock/internal/tempfile"
)

const (
	maxJobs    = 100 // of all sessions; the one that ended first is removed for another one
	maxRunning = 8   // half of them of signatures
	// keepTime is how long the result of a job is kept.
	keepTime = time.Hour
	// checkTime is the time between two calls of Task.Check.
	checkTime = time.Second
)

// The errors of Set.Start.
var (
	ErrTooMany      = errors.New("too many jobs are running")
	ErrSessionEnded = errors.New("the session has ended")
)

// The states of a job.
const (
	Waiting  = "waiting" // for the rest of the file
	Running  = "running"
	Done     = "done"
	Failed   = "failed"
	Canceled = "canceled"
)

// Status describes a job.
type Status struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"` // import, export or clear
	Account   string    `json:"account"`
	Table     string    `json:"table"`
	Name      string    `json:"name"`     // of the file
	State     string    `json:"state"`    // waiting, running, done, failed or canceled
	Read      int64     `json:"read"`     // valid rows of the file of an import
	Rows      int64     `json:"rows"`     // stored, deleted, or written to the file
	Bytes     int64     `json:"bytes"`    // written to the file, or read from it
	Size      int64     `json:"size"`     // of the file, 0 if it is not known
	Received  int64     `json:"received"` // bytes of the file of an import
	Skipped   int64     `json:"skipped"`
	Bad       []string  `json:"bad"` // the first skipped rows
	Resumable bool      `json:"resumable"`
	Begun     time.Time `json:"begun"`
	Ms        int64     `json:"ms"` // until now or the end
	Failure   any       `json:"-"`  // the result of New's explain
}

// Task is what a job does.
type Task struct {
	Status Status         // its Kind, Account, Table, Name, Size and Resumable
	Upload *upload.Upload // that Work reads, nil for none
	// Check, if set, returns an error once the session may not do the work any more. It is
	// called each second while the job runs.
	Check func(ctx context.Context) error
	// Work does the work until the end of ctx.
	Work func(ctx context.Context, j *Job) error
}

// Set is the jobs of all sessions. It is safe for concurrent use.
type Set struct {
	now     func() time.Time
	explain func(error) any

	mu      sync.Mutex
	list    map[string]*Job // by id; +checklocks:mu
	running sync.WaitGroup
}

// New returns an empty Set. Function explain returns the Status.Failure for the error of a job.
func New(now func() time.Time, explain func(error) any) *Set {
	return &Set{now: now, explain: explain, list: map[string]*Job{}}
}

// Job is work in the background. It is safe for concurrent use.
type Job struct {
	ID     string
	Upload *upload.Upload // of an import

	now    func() time.Time
	owner  string        // the id of the session
	kind   sessions.Kind // of the session
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{}
	forget func() bool // ends the wait for the end of the session

	mu     sync.Mutex
	status Status         // +checklocks:mu
	end    time.Time      // +checklocks:mu
	file   *tempfile.File // of an export that is done; +checklocks:mu
}

// Start starts a job of a session.
func (s *Set) Start(of *sessions.Session, t Task) (*Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkCountLocked(of); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(of.Ctx)
	d := t.Status
	d.ID, d.Begun, d.State, d.Bad = sessions.NewSecret(), s.now(), Running, []string{}
	j := &Job{
		ID: d.ID, Upload: t.Upload, now: s.now, owner: of.ID, kind: of.Kind, ctx: ctx, cancel: cancel, ended: make(chan struct{}), status: d,
	}
	if t.Upload != nil {
		t.Upload.Begin(j.Cancel)
	}
	s.list[j.ID] = j
	s.running.Go(func() {
		defer close(j.ended)
		defer cancel(nil)
		j.finish(t.Work(ctx, j), s.explain)
	})
	if t.Check != nil {
		s.running.Go(func() { j.watch(t.Check) })
	}
	j.forget = context.AfterFunc(of.Ctx, func() { s.remove(j) })
	return j, nil
}

// checkCountLocked returns an error if too many jobs run to start one of the session. It
// removes jobs that have ended, if there are too many or they ended long ago.
//
// +checklocks:s.mu
func (s *Set) checkCountLocked(of *sessions.Session) error {
	if of.Ctx.Err() != nil {
		return ErrSessionEnded
	}
	running := map[sessions.Kind]int{}
	var done []*Job
	for _, j := range s.list {
		switch end := j.endTime(); {
		case end.IsZero():
			running[j.kind]++
		case s.now().Sub(end) > keepTime:
			s.removeLocked(j)
		default:
			done = append(done, j)
		}
	}
	signed := running[sessions.BySignature]
	if signed+running[sessions.ByKey]+running[sessions.ByLink] >= maxRunning || of.Kind == sessions.BySignature && signed >= maxRunning/2 {
		return ErrTooMany
	}
	if len(s.list) >= maxJobs {
		s.removeLocked(slices.MinFunc(done, func(a, b *Job) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), a.endTime().Compare(b.endTime()))
		}))
	}
	return nil
}

// Find returns the job of a session with an id, nil if there is none.
func (s *Set) Find(of *sessions.Session, id string) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.list[id]; j != nil && j.owner == of.ID {
		return j
	}
	return nil
}

// List returns the jobs of a session, the newest first.
func (s *Set) List(of *sessions.Session) []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Status
	for _, j := range s.list {
		if j.owner == of.ID {
			list = append(list, j.Status())
		}
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID)) })
	return list
}

// remove ends a job and frees its file.
func (s *Set) remove(j *Job) {
	j.Cancel()
	<-j.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(j)
}

// removeLocked removes a job that has ended, and its file in the background.
//
// +checklocks:s.mu
func (s *Set) removeLocked(j *Job) {
	if s.list[j.ID] != j {
		return
	}
	delete(s.list, j.ID)
	j.forget()
	s.running.Go(func() {
		j.mu.Lock()
		file := j.file
		j.file = nil
		j.mu.Unlock()
		if file != nil {
			file.Close()
		}
	})
}

// Close ends all jobs and waits for them. Their sessions must have ended.
func (s *Set) Close() {
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.list))
	s.mu.Unlock()
	for _, j := range list {
		s.remove(j)
	}
	s.running.Wait()
}

// watch ends the job with the error of a check.
func (j *Job) watch(check func(context.Context) error) {
	tick := time.NewTicker(checkTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-j.ctx.Done():
			return
		}
		if err := check(j.ctx); err != nil {
			j.cancel(err)
			return
		}
	}
}

// finish sets the state at the end of a job.
func (j *Job) finish(err error, explain func(error) any) {
	if cause := context.Cause(j.ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	state, failure := Done, any(nil)
	switch {
	case err == nil:
	case j.ctx.Err() != nil && errors.Is(err, context.Canceled):
		state = Canceled
	default:
		state, failure = Failed, explain(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.end, j.status.State, j.status.Failure = j.now(), state, failure
}

// Change changes the status of the job. The function must not use the job.
func (j *Job) Change(f func(d *Status)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(&j.status)
}

// Status returns the status of the job.
func (j *Job) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.status
	d.Bad = slices.Clone(d.Bad)
	if j.Upload != nil {
		d.Received = j.Upload.Received()
	}
	end := j.end
	if end.IsZero() {
		end = j.now()
	}
	d.Ms = end.Sub(d.Begun).Milliseconds()
	return d
}

// Cancel ends the job, which can still be found.
func (j *Job) Cancel() { j.cancel(nil) }

// endTime returns the time at which the job ended, zero before.
func (j *Job) endTime() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// IsRunning reports whether the job has not ended.
func (j *Job) IsRunning() bool { return j.endTime().IsZero() }

// SetFile sets the file that is the result of the job, which closes it when it is removed.
func (j *Job) SetFile(file *tempfile.File, rows int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.file, j.status.Rows, j.status.Bytes, j.status.Size = file, rows, file.Size(), file.Size()
}

// File returns the file that is the result of the job, nil if there is none.
func (j *Job) File() *tempfile.File {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file
}
