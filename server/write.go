package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// writeNames are the names of writes in events.
var writeNames = [...]string{
	store.OpInsert:          "InsertEntity",
	store.OpInsertOrMerge:   "InsertOrMergeEntity",
	store.OpInsertOrReplace: "InsertOrReplaceEntity",
	store.OpMerge:           "MergeEntity",
	store.OpReplace:         "ReplaceEntity",
	store.OpDelete:          "DeleteEntity",
}

// kindOf returns the kind of a write by its method and whether it has If-Match.
func kindOf(method string, conditional bool) store.OpKind {
	switch {
	case method == http.MethodPost:
		return store.OpInsert
	case method == http.MethodDelete:
		return store.OpDelete
	case method == http.MethodPut && conditional:
		return store.OpReplace
	case method == http.MethodPut:
		return store.OpInsertOrReplace
	case conditional:
		return store.OpMerge
	}
	return store.OpInsertOrMerge
}

// actionOf returns the action of a write, for its permission.
func actionOf(kind store.OpKind) sharedkey.Action {
	switch kind {
	case store.OpInsert:
		return sharedkey.Insert
	case store.OpInsertOrMerge, store.OpInsertOrReplace:
		return sharedkey.Upsert
	case store.OpMerge, store.OpReplace:
		return sharedkey.Update
	case store.OpDelete:
	}
	return sharedkey.DeleteEntity
}

// etagStart is the beginning of every ETag of the service. A time and `'"` follow.
const etagStart = `W/"datetime'`

// timeETag returns the ETag of the time in text, which begins with etagStart. It reports false
// if text is not an ETag of the service. Stores compare ETags as text, and the service compares
// times: with nometadata, clients make ETags of Timestamps, and the legacy .NET client writes
// seven digits of the fraction.
func timeETag(text string) (etag edm.ETag, ok bool) {
	escaped, ok := strings.CutSuffix(text[len(etagStart):], `'"`)
	plain, err := url.PathUnescape(escaped)
	if !ok || err != nil {
		return "", false
	}
	t, err := edm.ParseTicks(plain)
	var outside *edm.Error
	switch {
	case errors.As(err, &outside): // a time nevertheless, of no entity
		return edm.ETag(text), true
	case err != nil:
		return "", false
	}
	return t.ETag(), true
}

// parseETag parses an If-Match header.
func parseETag(values []string) (edm.ETag, error) {
	text := strings.TrimSpace(strings.Join(values, ","))
	if strings.HasPrefix(text, etagStart) && len(values) == 1 {
		etag, ok := timeETag(text)
		if !ok {
			return "", problem.ErrConditionNotMet
		}
		return etag, nil
	}
	quoted, weak := strings.CutPrefix(text, `W/"`)
	if !weak {
		quoted, weak = strings.CutPrefix(text, `w/"`)
	}
	switch {
	case text == string(store.Any):
		return store.Any, nil
	case weak && strings.IndexByte(quoted, '"') == len(quoted)-1 && len(values) == 1 && len(quoted) > 0:
		return edm.ETag(text), nil
	}
	if len(text) > maxClientIDBytes {
		text = text[:maxClientIDBytes]
	}
	p := problem.Bad(problem.CodeInvalidInput, fmt.Sprintf("The etag value '%s' specified in one of the request headers is not valid. Please make "+
		"sure only one etag value is specified and is valid.", text))
	p.Early = true
	return "", p
}

// conditionOf returns the ETag of the conditions in h, "" if there is none.
func conditionOf(method string, h *headers) (edm.ETag, error) {
	switch {
	case len(h.ifNoneMatch) > 0 && len(h.ifMatch) > 0:
		return "", problem.Bad(problem.CodeInvalidInput, "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. "+
			"Please specify either one of the headers or none of them.")
	case len(h.ifNoneMatch) > 0:
		return "", problem.Bad(problem.CodeInvalidInput, "If-None-Match HTTP header cannot be specified for "+method+" operations.")
	case len(h.ifMatch) > 0:
		return parseETag(h.ifMatch)
	case method == http.MethodDelete:
		return "", problem.ErrInput
	}
	return "", nil
}

// admit checks what is known of a write without its body: that the client may do it,
// and that the body is JSON.
func admit(g *sharedkey.Grant, c *command, h *headers) (store.OpKind, error) {
	kind := kindOf(c.method, len(h.ifMatch) > 0)
	if err := g.Allow(actionOf(kind), c.target.Table); err != nil || kind == store.OpDelete {
		return kind, err
	}
	return kind, request.CheckJSON(h.contentType)
}

// parseWrite parses a write that was admitted, of op.Kind, into op, which is otherwise
// zero and shares memory with body and with the parser. A refusal is an error of the
// conditions, in place of which op has Any; the errors in refuse take precedence over it.
func (x *exchange) parseWrite(op *store.Op, c *command, h *headers, body []byte) (refusal, err error) {
	if err := early(edm.CheckTableName(c.target.Table)); err != nil {
		return nil, err
	}
	op.Entity.Key = c.target.Key
	if op.Kind != store.OpInsert {
		if err := checkURLKey(&x.grant, c.target.Key); err != nil {
			return nil, err
		}
		var illegal *edm.Error
		if err := edm.CheckKey(c.target.Key); errors.As(err, &illegal) && illegal.Rule == edm.RuleKey {
			return nil, err
		}
		if op.IfMatch, refusal = conditionOf(c.method, h); refusal != nil {
			op.IfMatch = store.Any
		}
	}
	if op.Kind == store.OpDelete {
		return refusal, nil
	}
	if err := x.parseEntity(&op.Entity, body, odata.ParseOptions{IgnoreKeys: op.Kind != store.OpInsert}); err != nil {
		var outOfRange *odata.Error
		if errors.As(err, &outOfRange) && outOfRange.Kind == odata.OutOfRange {
			// Errors of keys and names take precedence.
			if other := store.CheckBatch(c.target.Table, []store.Op{*op}, nil); other != nil {
				err = writeProblem(other, op)
			}
		}
		return nil, err
	}
	if op.Kind == store.OpInsert {
		return refusal, x.grant.AllowKey(op.Entity.Key)
	}
	return refusal, nil
}

// write is every operation that changes one entity.
func (x *exchange) write() error {
	h := headers{ifMatch: x.r.Header["If-Match"], ifNoneMatch: x.r.Header["If-None-Match"], contentType: x.r.Header["Content-Type"]}
	kind, err := admit(&x.grant, &x.command, &h)
	if err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	op := store.Op{Kind: kind}
	refusal, err := x.parseWrite(&op, &x.command, &h, x.json())
	if err != nil {
		return err
	}
	if refusal != nil {
		return writeProblem(x.refuse(x.target.Table, []store.Op{op}, 0, refusal), &op)
	}
	if kind == store.OpInsert && x.prefer != request.ReturnNoContent {
		if err := x.reserveInserted(entityBytes(&op.Entity, x.level, x.base)); err != nil {
			return err
		}
	}
	res, err := x.account.store.Apply(x.r.Context(), x.target.Table, op)
	if err != nil {
		return writeProblem(err, &op)
	}
	x.setODataHead()
	if kind == store.OpInsert {
		return x.sendInserted(&op.Entity, res[0])
	}
	if kind != store.OpDelete {
		x.set("Etag", string(res[0].ETag))
		x.setPreferenceApplied()
	}
	return x.sendEmpty(http.StatusNoContent)
}

// refuse returns the refusal of the condition of ops[i], or an error of the entities or of
// the table, which take precedence. The error is a *store.OpError.
func (x *exchange) refuse(table string, ops []store.Op, i int, refusal error) error {
	if err := store.CheckBatch(table, ops, nil); err != nil {
		return err
	}
	if _, err := x.account.store.TableMeta(x.r.Context(), table); err != nil {
		return &store.OpError{Err: err}
	}
	return &store.OpError{Index: i, Err: refusal}
}

// writeProblem returns err, with the text of the key if it refuses a key of an insert. If
// both a value and its entity are too large, the service refuses the entity.
func writeProblem(err error, op *store.Op) error {
	var model *edm.Error
	if !errors.As(err, &model) {
		return err
	}
	if model.Rule == edm.RuleValueSize && edm.EntitySize(op.Entity.Key, op.Entity.Properties) > edm.MaxEntityBytes {
		p := *problem.OfModel(&edm.Error{Rule: edm.RuleEntitySize})
		p.Executed = true
		return &p
	}
	if op.Kind != store.OpInsert || model.Rule != edm.RuleKey {
		return err
	}
	value := op.Entity.Key.Partition
	if model.Name == edm.RowKeyName {
		value = op.Entity.Key.Row
	}
	p := problem.OutOfRange(model.Name, request.EscapeControls(value))
	p.Early = true
	return p
}

// sendInserted sends the response to an insert.
func (x *exchange) sendInserted(e *edm.Entity, res store.Result) error {
	link := x.entityLink(x.out.Buf, x.target.Table, e.Key)
	x.set("Location", link)
	x.set("Etag", string(res.ETag))
	x.setPreferenceApplied()
	if x.prefer == request.ReturnNoContent {
		x.set("Dataserviceid", link)
		return x.sendEmpty(http.StatusNoContent)
	}
	e.Timestamp = res.Timestamp
	x.event.Returned = 1
	x.out.Buf = odata.AppendEntity(x.out.Buf[:0], e.View(), x.form(x.target.Table, element, ""))
	return x.send(http.StatusCreated, request.ContentType(x.level))
}

// entityLink returns the URL of an entity, with scheme, host and account as the client
// wrote them. It uses the free capacity of buf.
func (x *exchange) entityLink(buf []byte, table string, key edm.Key) string {
	from := len(buf)
	return string(odata.AppendKeyLink(append(append(buf, x.base...), '/'), table, key.Partition, key.Row)[from:])
}
