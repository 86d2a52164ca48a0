package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// intent is one write as it was asked for, by a request or a part of a batch.
type intent struct {
	method      string // after tunnelling
	target      request.Target
	ifMatch     []string
	ifNoneMatch []string
	contentType []string
	body        []byte
}

// change is a write that is understood.
type change struct {
	op     store.Op
	refuse error // what is wrong with it that comes after the table's absence
}

// writeNames are the operations that events name.
var writeNames = [...]string{
	store.OpInsert:          "InsertEntity",
	store.OpInsertOrMerge:   "InsertOrMergeEntity",
	store.OpInsertOrReplace: "InsertOrReplaceEntity",
	store.OpMerge:           "MergeEntity",
	store.OpReplace:         "ReplaceEntity",
	store.OpDelete:          "DeleteEntity",
}

// kindOf returns what a method means, with a condition and without.
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

// actionOf returns the permission that a write needs.
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

// parseETag reads an If-Match header.
func parseETag(values []string) (edm.ETag, error) {
	text := strings.TrimSpace(strings.Join(values, ","))
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
	return "", problem.Bad(problem.CodeInvalidInput, fmt.Sprintf("The etag value '%s' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.", text))
}

// conditionProblem returns what is wrong with the conditions of in, as opposed to
// with the entity that they are about.
func conditionProblem(in *intent) (etag edm.ETag, err error) {
	switch {
	case len(in.ifNoneMatch) > 0 && len(in.ifMatch) > 0:
		return "", problem.Bad(problem.CodeInvalidInput, "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time.")
	case len(in.ifNoneMatch) > 0:
		return "", problem.Bad(problem.CodeInvalidInput, "If-None-Match HTTP header cannot be specified for "+in.method+" operations.")
	case len(in.ifMatch) > 0:
		return parseETag(in.ifMatch)
	case in.method == http.MethodDelete:
		return "", problem.ErrInput
	}
	return "", nil
}

// admit looks at what comes before the body: whether the client may do what it asks
// for, and whether it sends JSON.
func (x *exchange) admit(in *intent) (store.OpKind, error) {
	kind := kindOf(in.method, len(in.ifMatch) > 0)
	if err := x.grant.Allow(actionOf(kind), in.target.Table); err != nil || kind == store.OpDelete {
		return kind, err
	}
	return kind, request.CheckJSON(in.contentType)
}

// understand turns an intent that was admitted into an op, which shares in.body and
// the parser's memory.
func (x *exchange) understand(kind store.OpKind, in *intent) (change, error) {
	if err := early(edm.CheckTableName(in.target.Table)); err != nil {
		return change{}, err
	}
	c := change{op: store.Op{Kind: kind, Entity: edm.Entity{Key: in.target.Key}}}
	if kind != store.OpInsert {
		if err := x.checkURLKey(in.target.Key); err != nil {
			return change{}, err
		}
		var illegal *edm.Error
		if err := edm.CheckKey(in.target.Key); errors.As(err, &illegal) && illegal.Rule == edm.RuleKey {
			return change{}, err
		}
		c.op.IfMatch, c.refuse = conditionProblem(in)
	}
	if kind == store.OpDelete {
		return c, nil
	}
	e, err := x.parseEntity(in.body, odata.ParseOptions{IgnoreKeys: kind != store.OpInsert})
	c.op.Entity.Properties = e.Properties
	if kind == store.OpInsert {
		c.op.Entity.Key = e.Key
	}
	if err != nil {
		var late *odata.Error
		if errors.As(err, &late) && late.Kind == odata.OutOfRange {
			// What is wrong with keys and names comes first.
			if rest := store.CheckBatch(in.target.Table, []store.Op{c.op}); rest != nil {
				err = keyProblem(rest, &c.op)
			}
		}
		return change{}, err
	}
	if kind == store.OpInsert {
		return c, x.grant.AllowKey(e.Key)
	}
	return c, nil
}

// write is every operation that changes one entity.
func (x *exchange) write() error {
	in := intent{
		method: x.method, target: x.target,
		ifMatch: x.r.Header["If-Match"], ifNoneMatch: x.r.Header["If-None-Match"],
		contentType: x.r.Header["Content-Type"],
	}
	kind, err := x.admit(&in)
	if err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	in.body = x.body
	c, err := x.understand(kind, &in)
	if err != nil {
		return err
	}
	x.did = writeNames[c.op.Kind]
	if c.refuse != nil {
		return x.refuse(&c, x.target.Table)
	}
	res, err := x.account.store.Apply(x.r.Context(), x.target.Table, c.op)
	if err != nil {
		return keyProblem(err, &c.op)
	}
	x.returned = 1
	x.headOData()
	if c.op.Kind == store.OpInsert {
		return x.sendInserted(&c.op.Entity, res[0])
	}
	if c.op.Kind != store.OpDelete {
		x.set("Etag", string(res[0].ETag))
	}
	return x.sendEmpty(http.StatusNoContent)
}

// refuse returns what is wrong with c, unless its entity or the absence of its
// table comes first.
func (x *exchange) refuse(c *change, table string) error {
	op := c.op
	op.IfMatch = store.Any
	if err := store.CheckBatch(table, []store.Op{op}); err != nil {
		return keyProblem(err, &op)
	}
	if _, err := x.account.store.TableMeta(x.r.Context(), table); err != nil {
		return err
	}
	return c.refuse
}

// keyProblem names the key that an insert was refused for.
func keyProblem(err error, op *store.Op) error {
	var model *edm.Error
	if op.Kind != store.OpInsert || !errors.As(err, &model) || model.Rule != edm.RuleKey {
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

// sendInserted answers an insert.
func (x *exchange) sendInserted(e *edm.Entity, res store.Result) error {
	link := x.entityLink(x.buf, x.target.Table, e.Key)
	x.set("Location", link)
	x.set("Etag", string(res.ETag))
	x.preferenceApplied()
	if x.prefer == request.ReturnNoContent {
		x.set("Dataserviceid", link)
		return x.sendEmpty(http.StatusNoContent)
	}
	e.Timestamp = res.Timestamp
	x.buf = odata.AppendEntity(x.buf[:0], e.View(), x.form(x.target.Table, element, ""))
	return x.send(http.StatusCreated, request.ContentType(x.level))
}

// entityLink returns the URL of an entity, in the client's own words. It is made in
// the memory behind buf.
func (x *exchange) entityLink(buf []byte, table string, key edm.Key) string {
	from := len(buf)
	return string(odata.AppendKeyLink(append(append(buf, x.base...), '/'), table, key.Partition, key.Row)[from:])
}
