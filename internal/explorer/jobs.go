package explorer

import (
	"context"
	"errors"
	"net/http"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/jobs"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// maxName limits the name of a file, which a job keeps.
const maxName = 1 << 10

// start starts a job. It ends with its session, and when the session may not do the action
// on the table any more.
func (x *exchange) start(may sharedkey.Action, t jobs.Task) (*jobs.Job, error) {
	if len(t.Status.Name) > maxName {
		return nil, badInput("The name of the file is too long.")
	}
	if x.s.Account != "" {
		one := *x.s
		t.Check = func(ctx context.Context) error { return x.h.recheck(x.r.WithContext(ctx), &one, may, t.Status.Table) }
	}
	j, err := x.h.jobs.Start(x.s, t)
	switch {
	case errors.Is(err, jobs.ErrSessionEnded):
		return nil, errNoSession
	case errors.Is(err, jobs.ErrTooMany):
		return nil, Refuse(http.StatusTooManyRequests, "TooManyJobs", "Too much is under way. Wait until some of it is done.")
	}
	return j, err
}

// jobOf returns a job of the session.
func (x *exchange) jobOf(id string) (*jobs.Job, error) {
	if j := x.h.jobs.Find(x.s, id); j != nil {
		return j, nil
	}
	return nil, Refuse(http.StatusNotFound, "NoJob", "There is no such job. It may have ended more than an hour ago.")
}

func (x *exchange) listJobs() (any, error) {
	list := []Job{}
	for _, d := range x.h.jobs.List(x.s) {
		list = append(list, describeJob(d))
	}
	return map[string]any{"jobs": list}, nil
}

func describeJob(d jobs.Status) Job {
	f, _ := d.Failure.(*Failure)
	return Job{d, f}
}

func (x *exchange) job() (any, error) {
	j, err := x.jobOf(x.r.URL.Query().Get("id"))
	if err != nil {
		return nil, err
	}
	return describeJob(j.Status()), nil
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
	j.Cancel()
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
	j, err := x.start(sharedkey.DeleteEntity, jobs.Task{
		Status: jobs.Status{Kind: "clear", Account: in.Account, Table: in.Table},
		Work: func(ctx context.Context, j *jobs.Job) error {
			return a.Clear(ctx, in.Table, func(rows int64) { j.Change(func(d *jobs.Status) { d.Rows = rows }) })
		},
	})
	if err != nil {
		return nil, err
	}
	return started{Job: j.ID}, nil
}
