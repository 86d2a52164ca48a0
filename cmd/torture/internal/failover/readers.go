//go:build linux

package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/history"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

// withETags makes the entities of a response have their ETags.
const withETags = "application/json;odata=minimalmetadata"

// read reads a key and logs it. The entity is nil unless the answer is OK. A read without
// an answer is not logged: it tells nothing.
func (c *client) read(k key) (*entity, history.Answer) {
	r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) {
		return s.Do(ctx, rest.Request{Method: http.MethodGet, Path: k.path(), Accept: withETags})
	})
	if r.answer == history.Refused || r.answer == history.Unknown {
		return nil, r.answer
	}
	c.l.answered()
	o := history.Op{Kind: history.Get, Answer: r.answer, Client: c.number, Server: r.server, Call: r.call, Return: r.finish}
	var e *entity
	if r.answer == history.OK {
		e = &entity{}
		if err := json.Unmarshal(r.response.Body, e); err != nil || e.Value == 0 {
			c.l.unexpected(r.server, fmt.Sprintf("the entity of key %s is %s", k, r.response.Problem()))
			return nil, history.Unknown
		}
		o.Value, o.ETag, o.Time = e.Value, e.ETag, timeOf(e.ETag)
	}
	c.l.log.Add(k.String(), o)
	return e, r.answer
}

// newReader returns a step that reads a key.
func newReader(c *client, _ int) func() {
	return func() {
		n := c.l.names
		switch c.rng.IntN(4) {
		case 0:
			c.read(n.counter(c.rng.IntN(counters)))
		case 1:
			c.read(n.pair(c.rng.IntN(pairs), c.rng.IntN(2)))
		default:
			c.read(n.other(c.rng.IntN(otherKeys)))
		}
		c.rest()
	}
}

// newPages returns a step that reads the rows of a partition in pages: a chain of many
// small ones, so that a fault hits its middle, or one of the greatest size.
func newPages(c *client, i int) func() {
	return func() {
		top := 1000
		if i > 0 {
			top = 20 + c.rng.IntN(50)
		}
		chain := c.pages(writerPartition(c.rng.IntN(c.l.writers)), top)
		for c.l.ctx.Err() == nil {
			p, more, err := chain()
			if err == nil {
				c.l.log.AddPage(p)
				c.l.answered()
			}
			if err == nil && !more {
				return
			}
			c.rest()
		}
	}
}

// pages returns a function that reads the next page of a partition and reports whether
// there are more. After an error it tries the same page again.
func (c *client) pages(partition string, top int) func() (history.Page, bool, error) {
	from, next := 0, ""
	return func() (p history.Page, more bool, err error) {
		path := fmt.Sprintf("%s()?$filter=%s&$top=%d%s", c.l.names.batches, url.QueryEscape("PartitionKey eq '"+partition+"'"), top, next)
		r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) {
			return s.Do(ctx, rest.Request{Method: http.MethodGet, Path: path, Accept: withETags})
		})
		if r.answer != history.OK {
			return p, true, fmt.Errorf("page of partition %s: %s", partition, r.note)
		}
		p = history.Page{Partition: partition, From: from, To: from, Server: r.server, Call: r.call, Return: r.finish}
		var body struct{ Value []entity }
		if err := json.Unmarshal(r.response.Body, &body); err != nil {
			return p, true, err
		}
		for _, e := range body.Value {
			number, err := strconv.Atoi(e.RowKey)
			if err != nil || e.PartitionKey != partition {
				return p, true, fmt.Errorf("page of partition %s has the row %s/%s", partition, e.PartitionKey, e.RowKey)
			}
			p.Rows = append(p.Rows, history.Row{Number: number, Batch: e.Batch, ETag: e.ETag})
			p.To = max(p.To, number+1)
		}
		partitionKey := r.response.Header.Get("X-Ms-Continuation-Nextpartitionkey")
		if partitionKey == "" {
			p.To = history.End
			return p, false, nil
		}
		from = p.To
		next = "&NextPartitionKey=" + url.QueryEscape(partitionKey) + "&NextRowKey=" + url.QueryEscape(r.response.Header.Get("X-Ms-Continuation-Nextrowkey"))
		return p, true, nil
	}
}
