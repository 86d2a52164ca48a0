package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// Limits of one page of a response, beside memory.MaxPageBytes of JSON. A page ends at the first
// that it reaches, and continuation headers tell the client where the next page starts.
const (
	maxPage     = 1000            // entities or tables
	maxPageTime = 5 * time.Second // of execution
	maxExamined = 4_000_000       // entities
	// A page makes at most maxComparisons, some 30 ms of CPU, if that suffices for fewer than
	// minExamined entities.
	maxComparisons = 2_000_000
	minExamined    = 10_000
)

// examinable returns how many entities or tables a page examines with a filter, which may
// be nil.
func examinable(expr *filter.Expr) int {
	if cost := expr.Cost(); cost > maxComparisons/minExamined {
		return max(1, maxComparisons/cost)
	}
	return maxExamined
}

// customNames returns the names that the store can select: it always returns keys and
// Timestamp.
func customNames(names []string) []string {
	if names == nil {
		return nil
	}
	custom := make([]string, 0, len(names))
	for _, name := range names {
		switch name {
		case edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName:
		default:
			custom = append(custom, name)
		}
	}
	return custom
}

// getEntity is GET /T(PartitionKey='a',RowKey='b').
func (x *exchange) getEntity() error {
	if err := x.viewEntity(); err != nil {
		return err
	}
	x.setODataHead()
	return x.send(http.StatusOK, request.ContentType(x.level))
}

// viewEntity writes the target to x.out.Buf, and sets its ETag as a header.
func (x *exchange) viewEntity() error {
	t := &x.target
	if err := early(checkTable(t.Table)); err != nil {
		return err
	}
	if err := checkURLKey(&x.grant, t.Key); err != nil {
		return err
	}
	suffix, names, err := request.Selection(x.query)
	if err != nil {
		return err
	}
	x.options = x.form(t.Table, element, suffix)
	x.options.Select = names
	x.event.Examined = 1
	err = x.account.store.View(x.r.Context(), t.Table, t.Key, x.viewed)
	if err == nil {
		err = x.out.ReserveRest()
	}
	if err != nil {
		return err
	}
	x.event.Returned = 1
	x.set("Etag", string(x.etag))
	return nil
}

// appendViewed writes the entity to x.out.Buf, with x.options, and sets x.etag.
func (x *exchange) appendViewed(row edm.Row) error {
	x.out.Buf = odata.AppendEntity(x.out.Buf[:0], row, x.options)
	x.etag = row.Timestamp().ETag()
	return nil
}

// checkURLKey refuses a key that a URL cannot contain, and one outside of the grant.
func checkURLKey(g *sharedkey.Grant, key edm.Key) error {
	if strings.ContainsAny(key.Partition, `/\`) || strings.ContainsAny(key.Row, `/\`) {
		return problem.ErrURLSyntax
	}
	return g.AllowKey(key)
}

// queryEntities is GET /T().
func (x *exchange) queryEntities() error {
	if err := x.collectEntities(); err != nil {
		return err
	}
	x.setODataHead()
	return x.send(http.StatusOK, request.ContentType(x.level))
}

// collectEntities writes the results of the query to x.out, and sets the
// continuation headers.
func (x *exchange) collectEntities() error {
	if err := early(checkTable(x.target.Table)); err != nil {
		return err
	}
	text := x.query.Get("$filter")
	if err := x.reserveFilter(text); err != nil {
		return err
	}
	expr, err := filter.Parse(text)
	if err != nil {
		return err
	}
	x.event.Filter = expr
	top, _, err := request.Top(x.query, maxPage)
	if err != nil {
		return err
	}
	from, err := request.KeyToken(x.query)
	if err != nil {
		return err
	}
	suffix, names, err := request.Selection(x.query)
	if err != nil {
		return err
	}
	o := x.form(x.target.Table, "", suffix)
	x.out.Buf = odata.AppendFeed(x.out.Buf[:0], o)
	o.Metadata, o.Select = "", names
	var next *edm.Key
	if top == 0 {
		_, err = x.account.store.TableMeta(x.r.Context(), x.target.Table)
	} else {
		q := store.Query{
			Filter: x.grant.Restrict(expr), Select: customNames(names), From: from,
			Limit: top, Budget: examinable(expr), BudgetBytes: x.account.budgetBytes,
		}
		next, err = x.appendPage(q, o)
	}
	if err == nil {
		err = x.out.ReserveRest()
	}
	if err != nil {
		return err
	}
	x.out.Buf = append(x.out.Buf, "]}"...)
	if next != nil {
		x.set("X-Ms-Continuation-Nextpartitionkey", string(request.AppendToken(nil, next.Partition)))
		x.set("X-Ms-Continuation-Nextrowkey", string(request.AppendToken(nil, next.Row)))
	}
	return nil
}

// namesPool holds *odata.Names, so that an exchange has none while it sends a response.
var namesPool = sync.Pool{New: func() any { return new(odata.Names) }}

// appendPage appends the results of q to the response. It returns the key at which the
// next page starts, nil after the last page.
func (x *exchange) appendPage(q store.Query, o odata.Options) (next *edm.Key, err error) {
	ctx, cancel := context.WithTimeout(x.r.Context(), maxPageTime)
	defer cancel()
	cursor := x.account.store.Query(ctx, x.target.Table, q)
	defer func() {
		if e, ok := cursor.(store.Examiner); ok {
			x.event.Examined = e.Examined()
		}
		err = errors.Join(err, cursor.Close())
	}()
	o.Names = namesPool.Get().(*odata.Names)
	defer namesPool.Put(o.Names)
	for cursor.Next() {
		if !x.out.HasSpace() {
			key := cursor.Row().Key()
			return &key, nil
		}
		if x.event.Returned > 0 {
			x.out.Buf = append(x.out.Buf, ',')
		}
		x.out.Buf = odata.AppendEntity(x.out.Buf, cursor.Row(), o)
		x.event.Returned++
		x.out.EndElement()
	}
	err, next = cursor.Err(), cursor.Resume()
	// The deadline of the page, or the client's own, ends the page. Without a key to resume
	// from, or with that of the page itself, nothing was read until then: a client would ask for the same page for ever.
	late := ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded)
	if late && next != nil && *next != *cmp.Or(q.From, &edm.Key{}) {
		err = nil
	}
	return next, err
}
