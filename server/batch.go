package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/odata/batch"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// batchOp is one operation of a batch.
type batchOp struct {
	*batch.Operation
	*headers
	command
	kind store.OpKind
}

// headers are the values of headers of a request, or of an operation of a batch.
type headers struct {
	accept, prefer, xMethod, ifMatch, ifNoneMatch, contentType []string
}

// batch is POST /$batch. An error of the envelope is the response to the request; an
// error of an operation is inside the envelope of the response, in place of all
// results.
func (x *exchange) batch() error {
	types := x.r.Header["Content-Type"]
	if len(types) != 1 {
		return problem.ErrMediaType
	}
	if err := x.readBody(); err != nil {
		return err
	}
	b, err := batch.Parse(types[0], x.body.Bytes)
	var invalid *batch.Error
	if errors.As(err, &invalid) && invalid.Kind == batch.Blank { // the Python client sends it for no operations
		return x.failOp([]batchOp{{Operation: new(batch.Operation), headers: new(headers)}}, 0, problem.ErrInput)
	}
	if err != nil {
		return err
	}
	if b.Changeset && x.Secondary {
		return problem.ErrSecondary
	}
	if !b.Changeset {
		return x.runQuery(&batchOp{Operation: &b.Operations[0], headers: headersOf(b.Operations[0].Header)})
	}
	if len(b.Operations) == 0 {
		return x.sendBatch(nil, nil, nil)
	}
	ops := make([]batchOp, len(b.Operations))
	writes := make([]store.Op, 0, len(b.Operations))
	table, refused := "", 0
	var previous *batchOp
	var refusal error // of operation refused
	for i := range b.Operations {
		o := &ops[i]
		o.Operation = &b.Operations[i]
		writes = writes[:i+1]
		condition, err := x.parseOp(o, previous, &writes[i])
		if condition != nil && refusal == nil {
			refused, refusal = i, condition
		}
		if err == nil && i > 0 && !sameTable(table, o.target.Table) {
			err = problem.OfModel(&edm.Error{Rule: edm.RuleBatchPartition})
		}
		if err != nil {
			// Errors of earlier operations take precedence.
			if writes = writes[:i]; i > 0 {
				if failed := store.CheckBatch(table, writes, nil); failed != nil {
					return x.failBatch(ops, writes, failed)
				}
			}
			return x.failOp(ops, i, problem.Of(err))
		}
		previous, table = o, o.target.Table
	}
	x.target.Table = table
	if refusal != nil {
		return x.failBatch(ops, writes, x.refuse(table, writes, refused, refusal))
	}
	if err := x.reserveInserts(ops, writes); err != nil {
		return err
	}
	res, err := x.account.store.Apply(x.r.Context(), table, writes...)
	if err != nil {
		return x.failBatch(ops, writes, err)
	}
	return x.sendBatch(ops, writes, res)
}

// sameTable compares table names as the data model does: only ASCII letters fold.
func sameTable(a, b string) bool { return a == b || edm.FoldTableName(a) == edm.FoldTableName(b) }

// parseOp parses o as a write into w, which is zero, like parseWrite. It copies what o has in
// common with the previous operation, which is nil for the first: most batches differ in the
// bodies alone.
func (x *exchange) parseOp(o, previous *batchOp, w *store.Op) (refusal, err error) {
	sameHeader := previous != nil && o.Header.Is(previous.Header)
	if sameHeader {
		o.headers = previous.headers
	} else {
		o.headers = headersOf(o.Header)
	}
	if sameHeader && o.Target == previous.Target && o.Method == previous.Method {
		o.command = previous.command
	} else if err := o.parseCommand(x.Address.Account); err != nil {
		return nil, err
	}
	if !isWrite(&o.command) {
		return nil, misplacedProblem(&o.command)
	}
	if o.kind, err = admit(&x.grant, &o.command, o.headers); err != nil {
		return nil, err
	}
	w.Kind = o.kind
	return x.parseWrite(w, &o.command, o.headers, o.Body)
}

// misplacedProblem refuses an operation that a batch cannot have.
func misplacedProblem(c *command) *problem.Problem {
	if c.target.Kind == request.ServiceRoot {
		return problem.MethodNotAllowed(nil)
	}
	return problem.ErrInput
}

// isWrite reports whether c is a write that a changeset can have.
func isWrite(c *command) bool {
	if c.target.Kind == request.Entities {
		return c.method == http.MethodPost
	}
	return c.target.Kind == request.Entity && slices.Contains(tunnelled, c.method)
}

// headersOf returns the values of h.
func headersOf(h batch.Header) *headers {
	return &headers{
		accept: h.Values("Accept"), prefer: h.Values("Prefer"), xMethod: h.Values("X-HTTP-Method"),
		ifMatch: h.Values("If-Match"), ifNoneMatch: h.Values("If-None-Match"), contentType: h.Values("Content-Type"),
	}
}

// parseCommand fills the command of o. The account must be that of the batch: only the
// batch is signed. If an operation has several errors, the order of the checks here
// decides which one the client sees, and differs from that of a request. On failure the
// fields that were parsed before are set, since the response depends on them.
func (o *batchOp) parseCommand(account string) (err error) {
	method := o.Method
	if len(o.xMethod) > 0 {
		method = o.xMethod[0]
	}
	o.command.prefer = request.PreferenceOf(method, o.headers.prefer)
	target, query, _ := strings.Cut(o.Target, "?")
	if o.query, err = request.ParseQuery(query); err != nil {
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
		if a.Account != account {
			return problem.ErrInput
		}
		rest = a.Rest
	} else if first, after, ok := strings.Cut(rest, "/"); ok && strings.TrimSuffix(first, request.SecondarySuffix) == account {
		rest = after
	}
	if o.target, err = request.ParseTarget(rest, target, o.query.Get("comp")); err != nil {
		return err
	}
	if o.level, err = request.LevelOf(o.query.Get("$format"), o.accept); err != nil {
		return err
	}
	if err := request.CheckOptions(o.query); err != nil {
		return err
	}
	// Operations of the legacy Java client repeat their method in X-HTTP-Method.
	if len(o.xMethod) == 1 && o.xMethod[0] == o.Method && slices.Contains(tunnelled, o.Method) {
		o.method = o.Method
		return nil
	}
	o.method, err = effectiveMethod(o.Method, o.xMethod)
	return err
}

// failBatch responds that an operation failed, or returns err if it is of the batch.
func (x *exchange) failBatch(ops []batchOp, writes []store.Op, err error) error {
	var failed *store.OpError
	if !errors.As(err, &failed) {
		return err
	}
	if failed.Index < len(writes) {
		err = writeProblem(err, &writes[failed.Index])
	}
	p := problem.Of(err)
	if failed.Executed && !p.Executed {
		q := *p
		q.Executed, p = true, &q
	}
	return x.failOp(ops, failed.Index, p)
}

// failOp responds that operation i failed with p, and that nothing was written.
func (x *exchange) failOp(ops []batchOp, i int, p *problem.Problem) error {
	message := p.Message
	// The service omits the index if the only operation failed in its execution.
	if alone := len(ops) == 1 && (p.Executed || p.Code == problem.ErrValueTooLarge.Code); !alone {
		message = strconv.Itoa(i) + ":" + message
	}
	if p.Status >= http.StatusInternalServerError && p.Cause != nil {
		return p
	}
	x.event.Code = p.Code
	w := x.beginBatch(true)
	header := make([]batch.Field, 0, 8)
	header = appendID(header, &ops[i])
	header = append(header, fieldNoSniff)
	if !p.Early {
		header = appendPreference(append(header, fieldNoCache), ops[i].command.prefer)
	}
	header = append(header, fieldVersion3, batch.Field{Name: "Content-Type", Value: request.ContentType(max(ops[i].level, odata.Minimal))})
	w.BeginOperation(p.Status, header...)
	w.Buf = odata.AppendError(w.Buf, p.Code, message, x.id, x.s.now())
	return x.endBatch(w)
}

// Fields of the responses to operations.
var (
	fieldNoSniff  = batch.Field{Name: "X-Content-Type-Options", Value: "nosniff"}
	fieldNoCache  = batch.Field{Name: "Cache-Control", Value: "no-cache"}
	fieldVersion1 = batch.Field{Name: "DataServiceVersion", Value: "1.0;"}
	fieldVersion3 = batch.Field{Name: "DataServiceVersion", Value: "3.0;"}
)

// appendID repeats the Content-ID of an operation. Like the service, it ignores one in
// the MIME header around the operation.
func appendID(header []batch.Field, o *batchOp) []batch.Field {
	if o.ContentID == "" {
		return header
	}
	return append(header, batch.Field{Name: "Content-ID", Value: o.ContentID})
}

func appendPreference(header []batch.Field, p request.Preference) []batch.Field {
	if p == request.NoPreference {
		return header
	}
	return append(header, batch.Field{Name: "Preference-Applied", Value: p.String()})
}

// beginBatch begins the envelope of a response in x.out.Buf.
func (x *exchange) beginBatch(changeset bool) *batch.Writer {
	inner := ""
	if changeset {
		inner = nextID(x.ids)
	}
	outer := nextID(x.ids)
	x.setODataHead()
	x.set("Content-Type", batch.ContentType(outer))
	return batch.NewWriter(x.out.Buf[:0], outer, inner)
}

func (x *exchange) endBatch(w *batch.Writer) error {
	x.out.Buf = w.End()
	return x.send(http.StatusAccepted, "")
}

// sendBatch responds that all operations succeeded.
func (x *exchange) sendBatch(ops []batchOp, writes []store.Op, res []store.Result) error {
	w := x.beginBatch(true)
	header := make([]batch.Field, 0, 10)
	for i := range ops {
		o := &ops[i]
		switch o.kind {
		case store.OpInsert:
			x.appendInserted(w, o, &writes[i].Entity, res[i])
		case store.OpDelete:
			w.BeginOperation(http.StatusNoContent, append(appendID(header[:0], o), fieldNoSniff, fieldNoCache, fieldVersion1)...)
		case store.OpInsertOrMerge, store.OpInsertOrReplace, store.OpMerge, store.OpReplace:
			version := fieldVersion1
			if o.command.prefer != request.NoPreference {
				version = fieldVersion3
			}
			header = appendPreference(append(appendID(header[:0], o), fieldNoSniff, fieldNoCache), o.command.prefer)
			w.BeginOperation(http.StatusNoContent, append(header, version, batch.Field{Name: "ETag", Value: string(res[i].ETag)})...)
		}
	}
	return x.endBatch(w)
}

// appendInserted appends the response to an insert.
func (x *exchange) appendInserted(w *batch.Writer, o *batchOp, e *edm.Entity, res store.Result) {
	link := x.entityLink(w.Buf, o.target.Table, e.Key)
	location := batch.Field{Name: "Location", Value: link}
	etag := batch.Field{Name: "ETag", Value: string(res.ETag)}
	header := appendID(make([]batch.Field, 0, 10), o)
	prefer := o.command.prefer
	if prefer == request.ReturnNoContent {
		header = appendPreference(append(header, fieldNoSniff, fieldNoCache), prefer)
		w.BeginOperation(http.StatusNoContent, append(header, fieldVersion3, location, batch.Field{Name: "DataServiceId", Value: link}, etag)...)
		return
	}
	header = append(header, fieldVersion3, batch.Field{Name: "Content-Type", Value: request.ContentType(o.level)}, fieldNoSniff, fieldNoCache)
	w.BeginOperation(http.StatusCreated, append(appendPreference(header, prefer), location, etag)...)
	e.Timestamp = res.Timestamp
	x.event.Returned++
	x.level = o.level
	options := x.form(o.target.Table, element, "")
	options.Table = o.target.Table
	w.Buf = odata.AppendEntity(w.Buf, e.View(), options)
}

// runQuery is a batch of one operation that reads an entity or runs a query.
func (x *exchange) runQuery(o *batchOp) error {
	outer := x.command
	err := x.execute(o)
	if err == nil {
		content := x.out.Take()
		header := []batch.Field{fieldVersion3, {Name: "Content-Type", Value: request.ContentType(o.level)}, fieldNoSniff, fieldNoCache}
		for _, name := range []string{"ETag", "x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey"} {
			if value := x.w.Header().Get(name); value != "" {
				header = append(header, batch.Field{Name: name, Value: value})
				x.w.Header().Del(name)
			}
		}
		w := x.beginBatch(false)
		w.BeginOperation(http.StatusOK, header...)
		w.Buf = append(w.Buf, content...)
		return x.endBatch(w)
	}
	failed := problem.Of(err)
	if failed == problem.ErrBusy || failed.Status >= http.StatusInternalServerError && failed.Cause != nil {
		outer.target.Table = o.target.Table // for the event
		x.command = outer                   // the response is that of the batch
		return failed
	}
	x.event.Code, x.event.Returned = failed.Code, 0
	x.out.Clear()
	header := []batch.Field{fieldVersion3, {Name: "Content-Type", Value: request.ContentType(max(o.level, odata.Minimal))}, fieldNoSniff}
	if !failed.Early {
		header = append(header, fieldNoCache)
	}
	w := x.beginBatch(false)
	w.BeginOperation(failed.Status, header...)
	w.Buf = odata.AppendError(w.Buf, failed.Code, "0:"+failed.Message, x.id, x.s.now())
	return x.endBatch(w)
}

// execute writes the result of o to x.out, as if o were a request of its own.
func (x *exchange) execute(o *batchOp) error {
	if err := o.parseCommand(x.Address.Account); err != nil {
		return err
	}
	if o.method != http.MethodGet || o.target.Kind != request.Entity && o.target.Kind != request.Entities {
		return misplacedProblem(&o.command)
	}
	if err := x.grant.Allow(sharedkey.Query, o.target.Table); err != nil {
		return err
	}
	x.command = o.command
	if o.target.Kind == request.Entity {
		return x.viewEntity()
	}
	return x.collectEntities()
}
