//go:build linux

package failover

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/cluster"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/history"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

const (
	requestTimeout = 10 * time.Second
	// firstPause and lastPause are the pauses of a client that was refused.
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// client sends requests to one server until that fails, and then to the next one.
type client struct {
	number  int
	l       *load
	rng     *rand.Rand
	server  int
	pause   time.Duration
	servers []*rest.Client
}

// result is what a request is known to have done.
type result struct {
	answer       history.Answer
	response     *rest.Response // nil: none
	server       int
	call, finish int64
	note         string
}

// send sends a request by do and classifies its response. A request is sent also when the
// run is about to end, but not afterwards.
func (c *client) send(do func(ctx context.Context, r *rest.Client) (*rest.Response, error)) result {
	r := result{server: c.server, call: cluster.Now()}
	response, err := do(context.Background(), c.servers[c.server])
	r.finish = cluster.Now()
	r.response = response
	if err != nil {
		r.note = err.Error()
		r.answer = history.Unknown
		if rest.NotSent(err) {
			r.answer = history.Refused
		}
	} else {
		r.answer = c.classify(&r)
	}
	if r.answer == history.Refused || r.answer == history.Unknown {
		c.next()
	} else {
		c.pause = 0
	}
	return r
}

// classify returns the answer that a response gives.
func (c *client) classify(r *result) history.Answer {
	a := r.response
	code := a.Code()
	r.note = strings.TrimSpace(http.StatusText(a.Status) + " " + code)
	switch {
	case a.Status < 300:
		r.note = ""
		return history.OK
	case a.Status == http.StatusNotFound && code == "TableNotFound":
		return history.NoTable
	case a.Status == http.StatusNotFound:
		return history.NotFound
	case a.Status == http.StatusConflict && (code == "EntityAlreadyExists" || code == "TableAlreadyExists"):
		return history.Exists
	case a.Status == http.StatusConflict && code == "TableBeingDeleted", a.Status == http.StatusServiceUnavailable:
		return history.Refused
	case a.Status == http.StatusPreconditionFailed:
		return history.Mismatch
	case a.Status == http.StatusInternalServerError && code == "OperationTimedOut":
		return history.Unknown
	}
	c.l.unexpected(r.server, a.Problem())
	return history.Unknown
}

// next changes to the next server after a pause, which grows while requests fail.
func (c *client) next() {
	c.server = (c.server + 1) % len(c.servers)
	c.pause = min(max(2*c.pause, firstPause), lastPause)
	c.sleep(c.pause/2 + time.Duration(c.rng.Int64N(int64(c.pause))))
}

// sleep waits for a time or until the load ends.
func (c *client) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.l.ctx.Done():
	}
}

// timeOf returns the Timestamp that an ETag holds, in ticks of 100 ns, 0 if it holds none.
func timeOf(etag string) int64 {
	text, ok := strings.CutPrefix(etag, `W/"datetime'`)
	if !ok {
		return 0
	}
	text, err := url.QueryUnescape(strings.TrimSuffix(text, `'"`))
	if err != nil {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return t.UnixNano() / 100
}
