package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/store"
)

const jsonType, returnNoContent = "application/json", "return-no-content"

// MaxBody is the size of the largest batch, in bytes of its request.
const MaxBody = 4 << 20

// noETag is well-formed and not that of any entity. It replaces ETags that a server would
// refuse, which match no entity either.
const noETag = `W/"datetime'1601-01-01T00%3A00%3A00Z'"`

// ifMatch returns the ETag of op for a request.
func ifMatch(op *store.Op) string {
	etag := string(op.IfMatch)
	odd := strings.ContainsFunc(etag, func(r rune) bool { return r < '!' || r > '~' })
	if etag == string(store.Any) || !odd && strings.HasPrefix(etag, `W/"`) && strings.HasSuffix(etag, `"`) {
		return etag
	}
	return noETag
}

// Apply implements store.Store. Several operations are one batch.
func (s *Store) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := store.CheckBatch(table, ops, nil); err != nil {
		return nil, err
	}
	if len(ops) == 1 {
		return s.applyOne(ctx, table, &ops[0])
	}
	body := s.appendBatch(nil, table, ops)
	if len(body) > MaxBody {
		got := fmt.Sprintf("a batch whose request has %d bytes", len(body))
		return nil, &store.OpError{Index: len(ops) - 1, Err: &edm.Error{Rule: edm.RuleBatchBytes, Limit: MaxBody, Got: got}}
	}
	x := &exchange{body: body, contentType: "multipart/mixed; boundary=batch_" + s.boundary, want: statusAccepted}
	index, err := s.write(ctx, x, func(ctx context.Context) error {
		action := aztables.TransactionAction{ActionType: aztables.TransactionTypeDelete, Entity: []byte(stub)}
		_, err := s.service.NewClient(table).SubmitTransaction(ctx, []aztables.TransactionAction{action}, nil)
		return err
	})
	if err != nil {
		return nil, opError(index, len(ops), err)
	}
	return s.batchResults(x.reply, ops)
}

// applyOne sends a single operation.
func (s *Store) applyOne(ctx context.Context, table string, op *store.Op) ([]store.Result, error) {
	x := &exchange{prefer: returnNoContent, want: wanted(op.Kind)}
	if op.Kind != store.OpInsert {
		x.link = string(odata.AppendKeyLink(nil, table, op.Entity.Key.Partition, op.Entity.Key.Row))
	}
	if op.Kind != store.OpDelete {
		x.body, x.contentType = appendEntity(nil, &op.Entity), jsonType
	}
	client, etag := s.service.NewClient(table), azcore.ETag(ifMatch(op))
	mode := aztables.UpdateModeReplace
	if op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge {
		mode = aztables.UpdateModeMerge
	}
	_, err := s.write(ctx, x, func(ctx context.Context) error {
		var err error
		switch op.Kind {
		case store.OpInsert:
			_, err = client.AddEntity(ctx, []byte(stub), nil)
		case store.OpInsertOrMerge, store.OpInsertOrReplace:
			_, err = client.UpsertEntity(ctx, []byte(stub), &aztables.UpsertEntityOptions{UpdateMode: mode})
		case store.OpMerge, store.OpReplace:
			_, err = client.UpdateEntity(ctx, []byte(stub), &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: &etag})
		case store.OpDelete:
			_, err = client.DeleteEntity(ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &etag})
		}
		return err
	})
	if err != nil {
		return nil, opError(0, 1, err)
	}
	if op.Kind == store.OpDelete {
		return make([]store.Result, 1), nil
	}
	r := resultOf(x.header.Get("ETag"))
	if r.Timestamp == 0 {
		return nil, s.noTable(x)
	}
	return []store.Result{r}, nil
}

// wanted returns the status codes of an operation that the server executed.
func wanted(kind store.OpKind) []int {
	if kind == store.OpInsert {
		return statusCreated
	}
	return statusChanged
}

// opError returns err as the failure of an operation, if the server refused one of n.
func opError(index, n int, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Status >= 500 {
		return err
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden:
		return err
	}
	executed := !errors.Is(err, store.ErrTableNotFound) && e.cause != nil
	return &store.OpError{Index: min(index, n-1), Executed: executed, Err: err}
}

// appendBatch appends the body of a batch.
func (s *Store) appendBatch(dst []byte, table string, ops []store.Op) []byte {
	dst = append(dst, "--batch_"+s.boundary+"\r\nContent-Type: multipart/mixed; boundary=changeset_"+s.boundary+"\r\n\r\n"...)
	begin := "--changeset_" + s.boundary + "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
	for i := range ops {
		op := &ops[i]
		dst = append(dst, begin...)
		method := "PUT "
		switch op.Kind {
		case store.OpInsert:
			method = "POST "
		case store.OpInsertOrMerge, store.OpMerge:
			method = "PATCH "
		case store.OpDelete:
			method = "DELETE "
		}
		dst = append(append(append(dst, method...), s.endpoint.URL...), '/')
		if op.Kind == store.OpInsert {
			dst = append(dst, table...)
		} else {
			dst = odata.AppendKeyLink(dst, table, op.Entity.Key.Partition, op.Entity.Key.Row)
		}
		dst = append(dst, " HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0;\r\nPrefer: "+returnNoContent+"\r\n"...)
		switch op.Kind {
		case store.OpMerge, store.OpReplace, store.OpDelete:
			dst = append(append(append(dst, "If-Match: "...), ifMatch(op)...), '\r', '\n')
		}
		if op.Kind != store.OpDelete {
			dst = append(dst, "Content-Type: "+jsonType+"\r\n\r\n"...)
			dst = appendEntity(dst, &op.Entity)
		}
		dst = append(dst, '\r', '\n')
		if op.Kind == store.OpDelete {
			dst = append(dst, '\r', '\n')
		}
	}
	return append(dst, "--changeset_"+s.boundary+"--\r\n--batch_"+s.boundary+"--\r\n"...)
}

// part is the answer to an operation of a batch.
type part struct {
	status int
	etag   string
	body   []byte
}

// batchParts returns the answers in the body of a response to a batch. A line that begins
// with -- ends an answer: JSON on one line cannot contain it.
func batchParts(body []byte) (parts []part) {
	inHeader, inBody := false, false
	for len(body) > 0 {
		end := bytes.IndexByte(body, '\n')
		if end < 0 {
			end = len(body) - 1
		}
		line := bytes.TrimRight(body[:end+1], "\r\n")
		body = body[end+1:]
		switch {
		case bytes.HasPrefix(line, []byte("--")):
			inHeader, inBody = false, false
		case !inHeader && !inBody && bytes.HasPrefix(line, []byte("HTTP/1.")):
			fields := bytes.Fields(line)
			if len(fields) < 2 {
				return nil
			}
			status, err := strconv.Atoi(string(fields[1]))
			if err != nil {
				return nil
			}
			parts = append(parts, part{status: status})
			inHeader = true
		case inHeader && len(line) == 0:
			inHeader, inBody = false, true
		case inHeader:
			name, value, _ := bytes.Cut(line, []byte(":"))
			if bytes.EqualFold(name, []byte("etag")) {
				parts[len(parts)-1].etag = string(bytes.TrimSpace(value))
			}
		case inBody:
			last := &parts[len(parts)-1]
			last.body = append(last.body, line...)
		}
	}
	return parts
}

// batchResults returns the results of a batch from its response. Azurite may leave out ETags.
func (s *Store) batchResults(body []byte, ops []store.Op) ([]store.Result, error) {
	parts, n := batchParts(body), len(ops)
	for _, p := range parts {
		if p.status < 400 {
			continue
		}
		e, index := answer(p.status, nil, p.body)
		e.setOutcome()
		return nil, opError(index, n, e)
	}
	if len(parts) != n {
		return nil, fmt.Errorf("%w: %s answers %d of %d operations of a batch", store.ErrOutcomeUnknown, s.options.Name, len(parts), n)
	}
	results := make([]store.Result, n)
	for i, p := range parts {
		if !slices.Contains(wanted(ops[i].Kind), p.status) {
			return nil, fmt.Errorf("%w: %s answers %d to operation %d of a batch", store.ErrOutcomeUnknown, s.options.Name, p.status, i)
		}
		results[i] = resultOf(p.etag)
		if p.etag != "" && results[i].Timestamp == 0 {
			return nil, fmt.Errorf("%w: %s answers an ETag of another form to operation %d of a batch", store.ErrOutcomeUnknown, s.options.Name, i)
		}
	}
	return results, nil
}
