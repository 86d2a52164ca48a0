package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// Limits of one page of an answer. A page that reaches one is cut, and a
// continuation token tells the client how to go on.
const (
	maxPage      = 1000            // entities or tables
	maxPageTime  = 5 * time.Second // of execution
	maxPageBytes = 4 << 20         // of JSON, passed by at most one entity
	maxExamined  = 4_000_000       // entities
)

// freePageBytes of an answer are not counted as in flight: however many clients
// do not read, each gets the beginning of a page.
const freePageBytes = 32 << 10

// customNames returns what of names the store can select: keys and Timestamp are
// always there.
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
	x.headOData()
	return x.send(http.StatusOK, request.ContentType(x.level))
}

// viewEntity writes the target into x.buf, and its ETag as a header.
func (x *exchange) viewEntity() error {
	t := &x.target
	if err := early(checkTable(t.Table)); err != nil {
		return err
	}
	if err := x.checkURLKey(t.Key); err != nil {
		return err
	}
	suffix, names := request.Selection(x.query)
	x.options = x.form(t.Table, element, suffix)
	x.options.Select = names
	x.examined = 1
	err := x.account.store.View(x.r.Context(), t.Table, t.Key, x.viewed)
	if err == nil {
		err = x.holdAnswer()
	}
	if err != nil {
		return err
	}
	x.returned = 1
	x.set("Etag", string(x.etag))
	return nil
}

// appendViewed writes the entity that was asked for into x.buf.
func (x *exchange) appendViewed(row edm.Row) error {
	x.buf = odata.AppendEntity(x.buf[:0], row, x.options)
	x.etag = row.Timestamp().ETag()
	return nil
}

// checkURLKey refuses a key that a URL cannot hold, and one outside of what the
// client may see.
func (x *exchange) checkURLKey(key edm.Key) error {
	if strings.ContainsAny(key.Partition, `/\`) || strings.ContainsAny(key.Row, `/\`) {
		return problem.ErrURLSyntax
	}
	return x.grant.AllowKey(key)
}

// within returns expr narrowed to what the client may see, so that neither scan
// nor continuation leaves it.
func (x *exchange) within(expr *filter.Expr) *filter.Expr {
	r, ok := x.grant.Bounds()
	if !ok {
		return expr
	}
	var to filter.Bound
	switch {
	case r.HasEnd && r.WholeEnd:
		to = filter.Bound{Kind: filter.AfterPartition, Key: r.End}
	case r.HasEnd:
		to = filter.Bound{Kind: filter.AfterRow, Key: r.End}
	}
	return filter.And(expr, filter.Keys(filter.Bound{Kind: filter.BeforeRow, Key: r.Start}, to))
}

// queryEntities is GET /T().
func (x *exchange) queryEntities() error {
	if err := x.collectEntities(); err != nil {
		return err
	}
	x.headOData()
	return x.send(http.StatusOK, request.ContentType(x.level))
}

// collectEntities writes what the query finds into x.buf, and where it goes on as
// headers.
func (x *exchange) collectEntities() error {
	if err := early(checkTable(x.target.Table)); err != nil {
		return err
	}
	expr, err := filter.Parse(x.query.Get("$filter"))
	if err != nil {
		return err
	}
	top, _, err := request.Top(x.query, maxPage)
	if err != nil {
		return err
	}
	from, err := request.KeyToken(x.query)
	if err != nil {
		return err
	}
	suffix, names := request.Selection(x.query)
	o := x.form(x.target.Table, "", suffix)
	x.buf = odata.AppendFeed(x.buf[:0], o)
	o.Metadata, o.Select = "", names
	var next *edm.Key
	if top == 0 {
		_, err = x.account.store.TableMeta(x.r.Context(), x.target.Table)
	} else {
		q := store.Query{Filter: x.within(expr), Select: customNames(names), From: from, Limit: top, Budget: maxExamined}
		next, err = x.appendPage(q, o)
	}
	if err == nil {
		err = x.holdAnswer()
	}
	if err != nil {
		return err
	}
	x.buf = append(x.buf, "]}"...)
	if next != nil {
		x.set("X-Ms-Continuation-Nextpartitionkey", string(request.AppendToken(nil, next.Partition)))
		x.set("X-Ms-Continuation-Nextrowkey", string(request.AppendToken(nil, next.Row)))
	}
	return nil
}

// appendPage appends what q finds to the answer and returns the key to go on
// from, nil at the end.
func (x *exchange) appendPage(q store.Query, o odata.Options) (next *edm.Key, err error) {
	ctx, cancel := context.WithTimeout(x.r.Context(), maxPageTime)
	defer cancel()
	cursor := x.account.store.Query(ctx, x.target.Table, q)
	defer func() {
		if e, ok := cursor.(store.Examiner); ok {
			x.examined = e.Examined()
		}
		err = errors.Join(err, cursor.Close())
	}()
	limit := freePageBytes
	for cursor.Next() {
		for x.chunks.bytes+len(x.buf) >= limit {
			if !x.morePage(&limit) {
				key := cursor.Row().Key()
				return &key, nil
			}
		}
		if x.returned > 0 {
			x.buf = append(x.buf, ',')
		}
		x.buf = odata.AppendEntity(x.buf, cursor.Row(), o)
		x.returned++
		if len(x.buf) >= chunkBytes {
			x.buf = x.chunks.add(x.buf)
		}
	}
	err = cursor.Err()
	if errors.Is(err, context.DeadlineExceeded) { // of the page, or the client's own
		err = nil
	}
	return cursor.Resume(), err
}

// morePage asks for room for another chunk. Where many clients do not read their
// pages, those that come get smaller ones.
func (x *exchange) morePage(limit *int) bool {
	if *limit >= maxPageBytes || !x.s.inFlight.acquirePage(chunkBytes) {
		return false
	}
	x.paged += chunkBytes
	*limit += chunkBytes
	return true
}

// holdAnswer counts what great entities make of an answer beyond the room that it
// has: a client that does not read one holds it.
func (x *exchange) holdAnswer() error {
	more := int64(x.chunks.bytes+len(x.buf)) - x.paged - chunkCap
	if more <= 0 {
		return nil
	}
	if !x.s.inFlight.acquirePage(more) {
		return problem.ErrBusy
	}
	x.paged += more
	return nil
}
