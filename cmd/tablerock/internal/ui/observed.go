package ui

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/recent"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// newKey returns a random key of an account.
func newKey() string {
	var b [64]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// observed reports the calls of a store to a monitor.
type observed struct {
	store.Store
	account string
	m       *recent.Monitor
}

// report reports a call that began at begin.
func (o *observed) report(q recent.Request, begin time.Time, err error) {
	q.Account, q.Duration, q.Status = o.account, time.Since(begin), http.StatusOK
	if err != nil {
		q.Status, q.Code, _ = server.Problem(err)
	}
	o.m.Observe(&q)
}

// Query implements store.Store.
func (o *observed) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	begin := time.Now()
	c := o.Store.Query(ctx, table, q)
	of := &observedCursor{Cursor: c, o: o, begin: begin, q: recent.Request{Operation: "QueryEntities", Table: table, Filter: q.Filter}}
	switch c.(type) {
	case store.Explainer:
		return &explainedCursor{examinedCursor{of}}
	case store.Examiner:
		return &examinedCursor{of}
	}
	return of
}

// observedCursor reports a query when it is closed.
type observedCursor struct {
	store.Cursor
	o      *observed
	begin  time.Time
	q      recent.Request
	closed bool
}

// Next implements store.Cursor.
func (c *observedCursor) Next() bool {
	ok := c.Cursor.Next()
	if ok {
		c.q.Returned++
	}
	return ok
}

// Close implements store.Cursor.
func (c *observedCursor) Close() error {
	if !c.closed {
		c.closed = true
		if e, ok := c.Cursor.(store.Examiner); ok {
			c.q.Examined = e.Examined()
		}
		c.o.report(c.q, c.begin, c.Cursor.Err())
	}
	return c.Cursor.Close()
}

// examinedCursor is a cursor that counts what it reads, as that of PostgreSQL.
type examinedCursor struct{ *observedCursor }

// Examined implements store.Examiner.
func (c *examinedCursor) Examined() int { return c.Cursor.(store.Examiner).Examined() }

// explainedCursor is a cursor of an engine.
type explainedCursor struct{ examinedCursor }

// Explain implements store.Explainer.
func (c *explainedCursor) Explain() (store.Plan, error) { return c.Cursor.(store.Explainer).Explain() }

// View implements store.Store.
func (o *observed) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	begin := time.Now()
	err := o.Store.View(ctx, table, key, read)
	o.report(recent.Request{Operation: "GetEntity", Table: table, Examined: 1, Returned: 1}, begin, err)
	return err
}

// Apply implements store.Store.
func (o *observed) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	begin := time.Now()
	results, err := o.Store.Apply(ctx, table, ops...)
	q := recent.Request{Operation: "Batch", Table: table, Write: true}
	if len(ops) == 1 {
		q.Operation = ops[0].Kind.String()
	}
	o.report(q, begin, err)
	return results, err
}
