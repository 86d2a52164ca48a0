package explorer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/sessions"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/tempfile"
)

const (
	maxJobs    = 100 // of all sessions; the one that ended first is removed for another one
	maxRunning = 8   // half of them of signatures
	// keepTime is how long the result of a job is kept.
	keepTime = time.Hour
	// maxName limits the name of a file, which a job keeps.
	maxName = 1 << 10
)

// The states of a job.
const (
	stateWaiting  = "waiting" // for the rest of the file
	stateRunning  = "running"
	stateDone     = "done"
	stateFailed   = "failed"
	stateCanceled = "canceled"
)

// jobs is the work in the background of all sessions.
type jobs struct {
	now func() time.Time

	mu      sync.Mutex
	list    map[string]*job // by id; +checklocks:mu
	running sync.WaitGroup

	files *tempfile.Files
}

func newJobs(now func() time.Time) *jobs {
	return &jobs{now: now, list: map[string]*job{}, files: tempfile.New(maxFileBytes)}
}

// job is work in the background.
type job struct {
	id     string
	owner  string        // the id of the session
	kind   sessions.Kind // of the session
	ctx    context.Context
	cancel context.CancelCauseFunc
	upload *upload // of an import
	ended  chan struct{}
	forget func() bool // ends the wait for the end of the session

	mu   sync.Mutex
	Job                 // +checklocks:mu
	end  time.Time      // +checklocks:mu
	file *tempfile.File // of an export that is done; +checklocks:mu
}

// change changes the description of the job.
func (j *job) change(f func(d *Job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(&j.Job)
}

// describe returns the description of the job.
func (j *job) describe(now time.Time) Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.Job
	d.Bad = slices.Clone(d.Bad)
	if j.upload != nil {
		d.Received = j.upload.received.Load()
	}
	if !j.end.IsZero() {
		now = j.end
	}
	d.Ms = now.Sub(d.Begun).Milliseconds()
	return d
}

// start starts a job. It ends with its session, and when the session may not do the action
// on the table any more.
func (x *exchange) start(d Job, may sharedkey.Action, up *upload, work func(ctx context.Context, j *job) error) (*job, error) {
	if len(d.Name) > maxName {
		return nil, badInput("The name of the file is too long.")
	}
	s := x.h.jobs
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkCountLocked(x.s); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(x.s.Ctx)
	d.ID, d.Begun, d.State, d.Bad = sessions.NewSecret(), s.now(), stateRunning, []string{}
	j := &job{id: d.ID, owner: x.s.ID, kind: x.s.Kind, ctx: ctx, cancel: cancel, upload: up, ended: make(chan struct{}), Job: d}
	if up != nil {
		up.idle = time.AfterFunc(idleTime, func() { cancel(nil) })
	}
	s.list[j.id] = j
	s.running.Go(func() {
		defer close(j.ended)
		defer cancel(nil)
		j.finish(x.h, work(ctx, j))
	})
	if x.s.Account != "" {
		r, one := x.r.WithContext(ctx), *x.s
		s.running.Go(func() { x.h.watch(r, &one, may, d.Table, cancel) })
	}
	j.forget = context.AfterFunc(x.s.Ctx, func() { s.remove(j) })
	return j, nil
}

// checkCountLocked returns an error if too many jobs run to start one of the session. It
// removes jobs that have ended, if there are too many or they ended long ago.
//
// +checklocks:s.mu
func (s *jobs) checkCountLocked(of *session) error {
	if of.Ctx.Err() != nil {
		return errNoSession
	}
	running := map[sessions.Kind]int{}
	var done []*job
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
		return Refuse(http.StatusTooManyRequests, "TooManyJobs", "Too much is under way. Wait until some of it is done.")
	}
	if len(s.list) >= maxJobs {
		s.removeLocked(slices.MinFunc(done, func(a, b *job) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), a.endTime().Compare(b.endTime()))
		}))
	}
	return nil
}

// watch ends a job with the error when its session may not do an action on a table any more:
// the key or the policy was removed, or the signature has expired.
func (h *Handler) watch(r *http.Request, one *session, may sharedkey.Action, table string, end context.CancelCauseFunc) {
	tick := time.NewTicker(eventTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		if err := h.recheck(r, one, may, table); err != nil {
			end(err)
			return
		}
	}
}

// recheck returns an error if a session may not do an action on a table any more.
func (h *Handler) recheck(r *http.Request, one *session, may sharedkey.Action, table string) error {
	if one.Account == "" || one.Ctx.Err() != nil {
		return one.Ctx.Err()
	}
	if err := h.verify(r, one); err != nil {
		return err
	}
	return one.Grant.Allow(may, table)
}

// endTime returns the time at which the job ended, zero before.
func (j *job) endTime() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

func (j *job) isRunning() bool { return j.endTime().IsZero() }

// finish sets the state at the end of a job.
func (j *job) finish(h *Handler, err error) {
	if cause := context.Cause(j.ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.end = h.o.Now()
	switch {
	case err == nil:
		j.State = stateDone
	case j.ctx.Err() != nil && errors.Is(err, context.Canceled):
		j.State = stateCanceled
	default:
		j.State = stateFailed
		_, j.Failure = h.failureOf(err)
	}
}

// remove ends a job and frees its file.
func (s *jobs) remove(j *job) {
	j.cancel(nil)
	<-j.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(j)
}

// removeLocked removes a job that has ended, and its file in the background.
//
// +checklocks:s.mu
func (s *jobs) removeLocked(j *job) {
	if s.list[j.id] != j {
		return
	}
	delete(s.list, j.id)
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

// close ends all jobs and waits for them. Their sessions have ended.
func (s *jobs) close() {
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.list))
	s.mu.Unlock()
	for _, j := range list {
		s.remove(j)
	}
	s.running.Wait()
}

// jobOf returns a job of the session.
func (x *exchange) jobOf(id string) (*job, error) {
	s := x.h.jobs
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.list[id]; j != nil && j.owner == x.s.ID {
		return j, nil
	}
	return nil, Refuse(http.StatusNotFound, "NoJob", "There is no such job. It may have ended more than an hour ago.")
}

func (x *exchange) listJobs() (any, error) {
	s := x.h.jobs
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Job{}
	for _, j := range s.list {
		if j.owner == x.s.ID {
			list = append(list, j.describe(s.now()))
		}
	}
	slices.SortFunc(list, func(a, b Job) int { return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID)) })
	return map[string]any{"jobs": list}, nil
}

func (x *exchange) job() (any, error) {
	j, err := x.jobOf(x.r.URL.Query().Get("id"))
	if err != nil {
		return nil, err
	}
	return j.describe(x.h.o.Now()), nil
}

func (x *exchange) cancelJob() (any, error) {
	var in struct{ ID string }
	if err := x.read(&in); err != nil {
		return nil, err
	}
	j, err := x.jobOf(in.ID)
	if err != nil {
		return nil, err
	}
	j.cancel(nil)
	return struct{}{}, nil
}

// started is the result of a request that starts a job.
type started struct {
	Job string `json:"job"`
	URL string `json:"url,omitempty"`
}

func (x *exchange) clearTable() (any, error) {
	a, in, err := x.tableOf(sharedkey.DeleteEntity)
	if err == nil {
		err = x.allow(sharedkey.Query, in.Table)
	}
	if err == nil {
		err = in.confirmed()
	}
	if err != nil {
		return nil, err
	}
	if _, bounded := x.s.Grant.Bounds(); bounded || a.Clear == nil {
		return nil, Refuse(http.StatusForbidden, "AuthorizationPermissionMismatch", "This session does not cover the whole table.")
	}
	j, err := x.start(Job{Kind: "clear", Account: in.Account, Table: in.Table}, sharedkey.DeleteEntity, nil, func(ctx context.Context, j *job) error {
		return a.Clear(ctx, in.Table, func(rows int64) { j.change(func(d *Job) { d.Rows = rows }) })
	})
	if err != nil {
		return nil, err
	}
	return started{Job: j.id}, nil
}
