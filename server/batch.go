package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/odata/batch"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// part is one operation of a batch on its way.
type part struct {
	*batch.Operation
	*headers
	address
	kind store.OpKind
}

// headers are the values of an operation's header.
type headers struct {
	accept, preferences, xMethod, ifMatch, ifNoneMatch, contentType []string
}

// address is what an operation is about, and the form of its answer.
type address struct {
	method string
	target request.Target
	query  url.Values
	level  odata.Level
	prefer request.Preference
}

// batch is POST /$batch. What is wrong with the envelope is answered as with any
// other request; what is wrong with an operation stands inside the answer, in the
// place of all results.
func (x *exchange) batch() error {
	types := x.r.Header["Content-Type"]
	if len(types) != 1 {
		return problem.ErrMediaType
	}
	if err := x.readBody(); err != nil {
		return err
	}
	b, err := batch.Parse(types[0], x.body)
	if err != nil {
		return err
	}
	if !b.Changeset {
		return x.lookUp(&part{Operation: &b.Operations[0], headers: headersOf(b.Operations[0].Header)})
	}
	parts := make([]part, len(b.Operations))
	ops := make([]store.Op, 0, len(b.Operations))
	table := ""
	var before *part
	for i := range b.Operations {
		p := &parts[i]
		p.Operation = &b.Operations[i]
		op, err := x.readPart(p, before)
		if err == nil && i > 0 && !sameTable(table, p.target.Table) {
			err = problem.OfModel(&edm.Error{Rule: edm.RuleBatchPartition})
		}
		if err != nil {
			// What is wrong with the operations before comes first.
			if len(ops) > 0 {
				if failed := store.CheckBatch(table, ops); failed != nil {
					return x.failBatch(parts, ops, failed)
				}
			}
			return x.failPart(parts, i, problem.Of(err))
		}
		before, table = p, p.target.Table
		ops = append(ops, op)
	}
	x.target.Table = table
	res, err := x.account.store.Apply(x.r.Context(), table, ops...)
	if err != nil {
		return x.failBatch(parts, ops, err)
	}
	return x.sendBatch(parts, ops, res)
}

func sameTable(a, b string) bool { return a == b || strings.EqualFold(a, b) }

// readPart turns p into an op. What it has in common with the part before, which is
// nil for the first, is not read again: in most batches that is all but the bodies.
func (x *exchange) readPart(p, before *part) (store.Op, error) {
	again := before != nil && p.Header.Is(before.Header)
	if again {
		p.headers = before.headers
	} else {
		p.headers = headersOf(p.Header)
	}
	if again && p.Target == before.Target && p.Method == before.Method {
		p.address = before.address
	} else if err := x.addressPart(p); err != nil {
		return store.Op{}, err
	}
	if !isWrite(p.target.Kind, p.method) {
		return store.Op{}, problem.ErrInput
	}
	in := intent{
		method: p.method, target: p.target, body: p.Body,
		ifMatch: p.ifMatch, ifNoneMatch: p.ifNoneMatch, contentType: p.contentType,
	}
	var err error
	if p.kind, err = x.admit(&in); err != nil {
		return store.Op{}, err
	}
	c, err := x.understand(p.kind, &in)
	if err == nil && c.refuse != nil {
		err = x.refuse(&c, p.target.Table)
	}
	return c.op, err
}

// isWrite reports whether a batch can have the operation.
func isWrite(kind request.Resource, method string) bool {
	if kind == request.Entities {
		return method == http.MethodPost
	}
	return kind == request.Entity && slices.Contains(tunnelled, method)
}

// headersOf returns the values that h has.
func headersOf(h batch.Header) *headers {
	return &headers{
		accept: h.Values("Accept"), preferences: h.Values("Prefer"), xMethod: h.Values("X-HTTP-Method"),
		ifMatch: h.Values("If-Match"), ifNoneMatch: h.Values("If-None-Match"), contentType: h.Values("Content-Type"),
	}
}

// addressPart finds out what p is about: its method, target and form of answer. The
// account is that of the batch, whose signature covers nothing else.
func (x *exchange) addressPart(p *part) (err error) {
	if p.Method == http.MethodPost && len(p.xMethod) == 0 {
		p.prefer = request.PreferenceOf(p.preferences)
	}
	target, query, _ := strings.Cut(p.Target, "?")
	if p.query, err = request.ParseQuery(query); err != nil {
		return err
	}
	host := ""
	if scheme, rest, ok := strings.Cut(target, "://"); ok && (scheme == "http" || scheme == "https") {
		host, target, _ = strings.Cut(rest, "/")
	}
	path, err := url.PathUnescape(target)
	if err != nil {
		return problem.ErrURLSyntax
	}
	rest := strings.TrimPrefix(path, "/")
	if host != "" {
		a := request.AddressOf(host, path)
		if a.Account != x.Address.Account {
			return problem.ErrInput
		}
		rest = a.Rest
	} else if first, after, ok := strings.Cut(rest, "/"); ok && strings.TrimSuffix(first, request.SecondarySuffix) == x.Address.Account {
		rest = after
	}
	if p.target, err = request.ParseTarget(rest, p.query.Get("comp")); err != nil {
		return err
	}
	if p.level, err = request.LevelOf(p.query.Get("$format"), p.accept); err != nil {
		return err
	}
	if err := request.CheckOptions(p.query); err != nil {
		return err
	}
	p.method, err = tunnel(p.Method, p.xMethod)
	return err
}

// failBatch answers that an operation failed, or fails as a whole.
func (x *exchange) failBatch(parts []part, ops []store.Op, err error) error {
	var failed *store.OpError
	if !errors.As(err, &failed) {
		return err
	}
	if failed.Index < len(ops) {
		err = keyProblem(err, &ops[failed.Index])
	}
	p := problem.Of(err)
	if p.Status == http.StatusRequestEntityTooLarge {
		return p
	}
	if failed.Executed && !p.Executed {
		q := *p
		q.Executed, p = true, &q
	}
	return x.failPart(parts, failed.Index, p)
}

// failPart answers that operation i failed with p, and nothing happened.
func (x *exchange) failPart(parts []part, i int, p *problem.Problem) error {
	message := p.Message
	// Alone, an operation that was carried out far enough to fail is not counted.
	if alone := len(parts) == 1 && (p.Executed || p.Code == problem.ErrValueTooLarge.Code); !alone {
		message = strconv.Itoa(i) + ":" + message
	}
	if p.Status >= http.StatusInternalServerError && p.Cause != nil {
		return p
	}
	x.code = p.Code
	w := x.beginBatch(true)
	header := make([]batch.Field, 0, 8)
	header = appendID(header, &parts[i])
	header = append(header, fieldNoSniff)
	if !p.Early {
		header = appendPreference(append(header, fieldNoCache), parts[i].prefer)
	}
	header = append(header, fieldVersion3, batch.Field{Name: "Content-Type", Value: request.ContentType(max(parts[i].level, odata.Minimal))})
	w.BeginOperation(p.Status, header...)
	w.Buf = odata.AppendError(w.Buf, p.Code, message, x.id, x.s.now())
	return x.endBatch(w)
}

// Fields that parts of an answer have in common.
var (
	fieldNoSniff  = batch.Field{Name: "X-Content-Type-Options", Value: "nosniff"}
	fieldNoCache  = batch.Field{Name: "Cache-Control", Value: "no-cache"}
	fieldVersion1 = batch.Field{Name: "DataServiceVersion", Value: "1.0;"}
	fieldVersion3 = batch.Field{Name: "DataServiceVersion", Value: "3.0;"}
)

// appendID echoes the Content-ID of an operation. One that stands in the frame
// around the operation is not echoed, as the service does not.
func appendID(header []batch.Field, p *part) []batch.Field {
	if p.ContentID == "" {
		return header
	}
	return append(header, batch.Field{Name: "Content-ID", Value: p.ContentID})
}

func appendPreference(header []batch.Field, p request.Preference) []batch.Field {
	if p == request.NoPreference {
		return header
	}
	return append(header, batch.Field{Name: "Preference-Applied", Value: p.String()})
}

// beginBatch begins the envelope of an answer in x.buf.
func (x *exchange) beginBatch(changeset bool) *batch.Writer {
	inner := ""
	if changeset {
		inner = uuid.NewString()
	}
	outer := uuid.NewString()
	x.headOData()
	x.set("Content-Type", batch.ContentType(outer))
	return batch.NewWriter(x.buf[:0], outer, inner)
}

func (x *exchange) endBatch(w *batch.Writer) error {
	x.buf = w.End()
	return x.send(http.StatusAccepted, "")
}

// sendBatch answers that all operations were carried out.
func (x *exchange) sendBatch(parts []part, ops []store.Op, res []store.Result) error {
	w := x.beginBatch(true)
	header := make([]batch.Field, 0, 10)
	for i := range parts {
		p := &parts[i]
		switch p.kind {
		case store.OpInsert:
			x.appendInserted(w, p, &ops[i].Entity, res[i])
		case store.OpDelete:
			w.BeginOperation(http.StatusNoContent, append(appendID(header[:0], p), fieldNoSniff, fieldNoCache, fieldVersion1)...)
		case store.OpInsertOrMerge, store.OpInsertOrReplace, store.OpMerge, store.OpReplace:
			etag := batch.Field{Name: "ETag", Value: string(res[i].ETag)}
			w.BeginOperation(http.StatusNoContent, append(appendID(header[:0], p), fieldNoSniff, fieldNoCache, fieldVersion1, etag)...)
		}
	}
	x.returned = len(parts)
	return x.endBatch(w)
}

// appendInserted appends the answer to an insert.
func (x *exchange) appendInserted(w *batch.Writer, p *part, e *edm.Entity, res store.Result) {
	link := x.entityLink(w.Buf, p.target.Table, e.Key)
	location := batch.Field{Name: "Location", Value: link}
	etag := batch.Field{Name: "ETag", Value: string(res.ETag)}
	header := appendID(make([]batch.Field, 0, 10), p)
	if p.prefer == request.ReturnNoContent {
		header = appendPreference(append(header, fieldNoSniff, fieldNoCache), p.prefer)
		w.BeginOperation(http.StatusNoContent, append(header, fieldVersion3, location, batch.Field{Name: "DataServiceId", Value: link}, etag)...)
		return
	}
	header = append(header, fieldVersion3, batch.Field{Name: "Content-Type", Value: request.ContentType(p.level)}, fieldNoSniff, fieldNoCache)
	w.BeginOperation(http.StatusCreated, append(appendPreference(header, p.prefer), location, etag)...)
	e.Timestamp = res.Timestamp
	x.level = p.level
	o := x.form(p.target.Table, element, "")
	o.Table = p.target.Table
	w.Buf = odata.AppendEntity(w.Buf, e.View(), o)
}

// lookUp answers a batch that is one read, of an entity or of a query.
func (x *exchange) lookUp(p *part) error {
	err := x.readOnly(p)
	if err == nil {
		content := x.chunks.join(x.buf)
		x.chunks.reset()
		etag := x.w.Header()["Etag"]
		delete(x.w.Header(), "Etag")
		header := []batch.Field{fieldVersion3, {Name: "Content-Type", Value: request.ContentType(p.level)}, fieldNoSniff, fieldNoCache}
		if len(etag) > 0 {
			header = append(header, batch.Field{Name: "ETag", Value: etag[0]})
		}
		w := x.beginBatch(false)
		w.BeginOperation(http.StatusOK, header...)
		w.Buf = append(w.Buf, content...)
		return x.endBatch(w)
	}
	failed := problem.Of(err)
	if failed == problem.ErrBusy || failed.Status >= http.StatusInternalServerError && failed.Cause != nil {
		return failed
	}
	x.code = failed.Code
	x.chunks.reset()
	header := []batch.Field{fieldVersion3, {Name: "Content-Type", Value: request.ContentType(max(p.level, odata.Minimal))}, fieldNoSniff}
	if !failed.Early {
		header = append(header, fieldNoCache)
	}
	w := x.beginBatch(false)
	w.BeginOperation(failed.Status, header...)
	w.Buf = odata.AppendError(w.Buf, failed.Code, "0:"+failed.Message, x.id, x.s.now())
	return x.endBatch(w)
}

// readOnly writes what p asks for into x.buf, as if it had come by itself.
func (x *exchange) readOnly(p *part) error {
	if err := x.addressPart(p); err != nil {
		return err
	}
	if p.method != http.MethodGet || p.target.Kind != request.Entity && p.target.Kind != request.Entities {
		return problem.ErrInput
	}
	if err := x.grant.Allow(sharedkey.Query, p.target.Table); err != nil {
		return err
	}
	x.target, x.query, x.level = p.target, p.query, p.level
	if p.target.Kind == request.Entity {
		return x.viewEntity()
	}
	return x.collectEntities()
}
