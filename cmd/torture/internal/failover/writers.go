//go:build linux

package failover

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/history"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

// slowPause is the pause of a writer after a batch when enough is acknowledged.
const slowPause = 300 * time.Millisecond

func writerPartition(i int) string { return fmt.Sprintf("w%03d", i) }

// filler gives the entities of a batch their usual size.
const filler = "The quick brown fox jumps over the lazy dog, and the same in other words, so that the row has about the usual size of one."

// newWriter returns a step that inserts a batch of two to four rows in a partition of the
// client.
func newWriter(c *client, i int) func() {
	partition := writerPartition(i)
	next := 0
	return func() {
		b := history.Batch{ID: c.l.value(), Partition: partition, First: next, Rows: 2 + c.rng.IntN(3)}
		next += b.Rows
		var operations []rest.Request
		for k := range b.Rows {
			operations = append(operations, rest.Request{
				Method: http.MethodPost, Path: c.l.names.batches, ContentType: rest.JSON,
				Body: fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":"%08d","Batch@odata.type":"Edm.Int64","Batch":"%d","Text":%q}`,
					partition, b.First+k, b.ID, filler),
			})
		}
		r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) { return s.Batch(ctx, operations) })
		b.Answer, b.Server, b.Call, b.Return = r.answer, r.server, r.call, r.finish
		if b.Answer == history.OK {
			b.ETags = r.response.PartETags()
			if len(b.ETags) != b.Rows {
				c.l.unexpected(r.server, fmt.Sprintf("a batch of %d operations has %d ETags", b.Rows, len(b.ETags)))
			}
			c.l.acked.Add(1)
			c.l.lastAck.Store(r.finish)
		}
		c.l.log.AddBatch(b)
		if c.l.acked.Load() > c.l.enough {
			c.sleep(slowPause)
		}
	}
}

// key is an entity with a value of its own for each write.
type key struct{ table, partition, row string }

func (k key) String() string { return k.table + "/" + k.partition + "/" + k.row }

func (k key) path() string {
	return fmt.Sprintf("%s(PartitionKey='%s',RowKey='%s')", k.table, k.partition, k.row)
}

// body returns the entity of a key.
func (k key) body(value int64, count int) []byte {
	return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"Value@odata.type":"Edm.Int64","Value":"%d","Count":%d}`, k.partition, k.row, value, count)
}

const (
	counters  = 8
	pairs     = 4
	otherKeys = 8
)

func (n names) counter(i int) key { return key{n.keys, "counter", fmt.Sprint("c", i)} }
func (n names) pair(i, side int) key {
	return key{n.keys, fmt.Sprint("pair", i), [2]string{"left", "right"}[side]}
}
func (n names) other(i int) key     { return key{n.keys, "other", fmt.Sprint("k", i)} }
func (n names) inDropped(i int) key { return key{n.dropped, "d", fmt.Sprint("k", i)} }

// entity is what a read returns of a key.
type entity struct {
	PartitionKey, RowKey string
	ETag                 string `json:"odata.etag"`
	Value                int64  `json:",string"`
	Batch                int64  `json:",string"`
	Count                int
}

// write is a write of a key.
type write struct {
	kind  history.Kind
	value int64
	count int
	old   *entity // the condition, nil: none
	merge bool
}

// request returns the request of a write.
func (k key) request(w write) rest.Request {
	r := rest.Request{Method: http.MethodPut, Path: k.path(), ContentType: rest.JSON}
	switch {
	case w.kind == history.Insert:
		r.Method, r.Path = http.MethodPost, k.table
	case w.kind == history.Delete:
		r.Method, r.ContentType = http.MethodDelete, ""
		r.IfMatch = "*"
	case w.merge:
		r.Method = "MERGE"
	}
	if w.kind != history.Delete {
		r.Body = k.body(w.value, w.count)
	}
	if w.old != nil {
		r.IfMatch = w.old.ETag
	}
	return r
}

// op returns the operation of a write with its result. etag is that of a success.
func (w write) op(c *client, r result, etag string) history.Op {
	o := history.Op{
		Kind: w.kind, Answer: r.answer, Client: c.number, Server: r.server, Call: r.call, Return: r.finish, Value: w.value, Note: r.note,
	}
	if w.old != nil {
		o.Conditional, o.Expected = true, w.old.Value
	}
	if r.answer == history.OK && w.value != 0 {
		o.ETag, o.Time = etag, timeOf(etag)
		if o.Time == 0 {
			c.l.unexpected(r.server, fmt.Sprintf("the ETag of a write is %q", etag))
		}
	}
	return o
}

// write sends a write of a key and logs it.
func (c *client) write(k key, w write) history.Op {
	r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) { return s.Do(ctx, k.request(w)) })
	etag := ""
	if r.response != nil {
		etag = r.response.Header.Get("ETag")
	}
	o := w.op(c, r, etag)
	c.l.log.Add(k.String(), o)
	return o
}

// newCounter returns a step that adds 1 to a counter under the condition of its ETag.
func newCounter(c *client, i int) func() {
	return func() {
		k := c.l.names.counter((i + c.rng.IntN(2)) % counters)
		old, answer := c.read(k)
		if answer == history.OK {
			c.write(k, write{kind: history.Put, value: c.l.value(), count: old.Count + 1, old: old, merge: c.rng.IntN(4) == 0})
		}
		c.rest()
	}
}

// rest is the pause of a client of keys: the histories of keys remain short.
func (c *client) rest() { c.sleep(time.Duration(20+c.rng.IntN(60)) * time.Millisecond) }

// newPair returns a step that gives both entities of a pair the same value in one batch.
func newPair(c *client, i int) func() {
	return func() {
		n := (i + c.rng.IntN(2)) % pairs
		value := c.l.value()
		var ws [2]write
		var operations []rest.Request
		conditional := c.rng.IntN(2) == 0
		for side := range ws {
			k := c.l.names.pair(n, side)
			ws[side] = write{kind: history.Put, value: value, merge: side == 1}
			if conditional {
				old, answer := c.read(k)
				if answer != history.OK {
					return
				}
				ws[side].old = old
			}
			operations = append(operations, k.request(ws[side]))
		}
		r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) { return s.Batch(ctx, operations) })
		etags := []string{"", ""}
		if r.answer == history.OK {
			if got := r.response.PartETags(); len(got) == 2 {
				etags = got
			}
		}
		if r.answer != history.OK && r.answer != history.Unknown {
			r.answer = history.Refused // which of the two refused the batch is not looked at
		}
		for side, w := range ws {
			c.l.log.Add(c.l.names.pair(n, side).String(), w.op(c, r, etags[side]))
		}
		c.rest()
	}
}

// newKeys returns a step that inserts, replaces, merges or deletes one of a few keys.
func newKeys(c *client, _ int) func() {
	return func() {
		c.anyWrite(c.l.names.other(c.rng.IntN(otherKeys)))
		c.rest()
	}
}

// anyWrite writes a key in some way.
func (c *client) anyWrite(k key) {
	w := write{kind: history.Put, value: c.l.value()}
	switch c.rng.IntN(6) {
	case 0, 1:
		w.kind = history.Insert
	case 2:
		w.kind, w.value = history.Delete, 0
	case 3:
		w.merge = true
	case 4:
		old, answer := c.read(k)
		if answer != history.OK {
			return
		}
		w.old = old
		if c.rng.IntN(3) == 0 {
			w.kind, w.value = history.Delete, 0
		}
	}
	c.write(k, w)
}

// newDroppedKeys returns a step that writes or reads a key of the table that is dropped.
func newDroppedKeys(c *client, _ int) func() {
	return func() {
		k := c.l.names.inDropped(c.rng.IntN(otherKeys))
		if c.rng.IntN(3) == 0 {
			c.read(k)
		} else {
			c.anyWrite(k)
		}
		c.rest()
	}
}

// newDropper returns a step that drops a table and creates it again. Both are operations
// on each of its keys.
func newDropper(c *client, _ int) func() {
	kind := history.Drop
	return func() {
		c.sleep(time.Duration(100+c.rng.IntN(400)) * time.Millisecond)
		request := rest.Request{Method: http.MethodDelete, Path: "Tables('" + c.l.names.dropped + "')"}
		if kind == history.Create {
			request = createRequest(c.l.names.dropped)
		}
		r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) { return s.Do(ctx, request) })
		o := history.Op{Kind: kind, Answer: r.answer, Client: c.number, Server: r.server, Call: r.call, Return: r.finish, Note: r.note}
		if kind == history.Drop && o.Answer == history.NotFound {
			o.Answer = history.NoTable
		}
		for i := range otherKeys {
			c.l.log.Add(c.l.names.inDropped(i).String(), o)
		}
		if r.answer == history.OK || r.answer == history.Exists || o.Answer == history.NoTable {
			kind = history.Drop + history.Create - kind
		}
	}
}

func createRequest(table string) rest.Request {
	return rest.Request{Method: http.MethodPost, Path: "Tables", ContentType: rest.JSON, Body: fmt.Appendf(nil, `{"TableName":%q}`, table)}
}
