package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// Options configure a Handler.
type Options struct {
	// Seed selects the failures. The default is 0.
	Seed uint64
	// Now is the clock of Rule.For. The default is time.Now.
	Now func() time.Time
	// Observe is called with each fault before it happens, by the goroutine of the
	// request. The default, nil, observes nothing.
	Observe func(Fault)
}

// Fault is a failure of one request.
type Fault struct {
	Operation, Account, Table string // as in server.Event
	Answer                    Answer
	Delay                     time.Duration // before the answer
}

// Handler executes requests, or makes them fail. It is safe for concurrent use.
type Handler struct {
	server *server.Server
	next   http.Handler
	o      Options
	rules  []Rule

	mu sync.Mutex
	// +checklocks:mu
	counts []counts // of rules
	// until when the names of deleted tables cannot be used
	// +checklocks:mu
	deleted map[name]time.Time
}

// counts are the counts of a rule.
type counts struct {
	matched  map[string]uint64 // by operation
	answered int
}

// name is a table of an account.
type name struct{ account, folded string }

// New returns a handler that passes requests to next, which is s or serves by s, unless a
// rule applies. It returns an error if a rule is not valid.
func New(s *server.Server, next http.Handler, rules []Rule, o Options) (*Handler, error) {
	if err := check(rules); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = systemNow
	}
	h := &Handler{server: s, next: next, o: o, rules: rules, counts: make([]counts, len(rules)), deleted: map[name]time.Time{}}
	for i := range h.counts { // +checklocksignore: not shared yet
		h.counts[i].matched = map[string]uint64{} // +checklocksignore: not shared yet
	}
	return h, nil
}

// ServeHTTP executes r, or makes it fail.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := h.server.Identify(r)
	if e.Operation == "" {
		h.next.ServeHTTP(w, r)
		return
	}
	rule, delay := h.choose(e)
	answer := Delay
	if rule != nil {
		answer = rule.Answer
	}
	if rule != nil || delay > 0 {
		h.observe(Fault{e.Operation, e.Account, e.Table, answer, delay})
	}
	wait(r.Context(), delay)
	switch answer {
	case ServerBusy:
		h.refuse(w, r, busy(rule.RetryAfter))
	case OperationTimedOut:
		h.refuse(w, r, problem.TimedOut(errInjected))
	case CutBefore:
		panic(http.ErrAbortHandler)
	case CutAfter:
		h.execute(discard{http.Header{}}, r, e)
		panic(http.ErrAbortHandler)
	case TableBeingDeleted:
		h.delete(w, r, e, rule.For)
	case Delay:
		h.execute(w, r, e)
	}
}

func (h *Handler) observe(f Fault) {
	if h.o.Observe != nil {
		h.o.Observe(f)
	}
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	h.server.Refuse(w, r, p)
}

// errInjected is the cause of failures in the log.
var errInjected = errors.New("a fault of the rules")

var errTableBeingDeleted = &problem.Problem{
	Status: http.StatusConflict, Code: string(TableBeingDeleted), Message: "The specified table is being deleted.",
}

func busy(retryAfter time.Duration) *problem.Problem {
	p := *problem.ErrBusy
	p.Cause = errInjected
	if retryAfter > 0 {
		p.Retry = strconv.Itoa(int(retryAfter / time.Second))
	}
	return &p
}

// choose returns the rule that answers a request, nil for none, and the delay of all rules
// up to it.
func (h *Handler) choose(e server.Event) (answer *Rule, delay time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.rules {
		r, c := &h.rules[i], &h.counts[i]
		if !r.matches(e) {
			continue
		}
		n := c.matched[e.Operation]
		c.matched[e.Operation] = n + 1
		if answer != nil || r.Times > 0 && c.answered == r.Times {
			continue
		}
		applies, d := r.decide(h.o.Seed, i, e.Operation, n)
		if !applies {
			continue
		}
		c.answered++
		delay += d
		if r.Answer != Delay {
			answer = r
		}
	}
	return answer, min(delay, maxDelay)
}

func (r *Rule) matches(e server.Event) bool {
	return (r.Operation == AnyOperation || r.Operation == e.Operation) && (r.Table == "" || edm.FoldTableName(r.Table) == edm.FoldTableName(e.Table))
}

// decide returns whether r, the rule at position i, applies to the n-th request of an
// operation, and its delay. It depends on the arguments alone.
func (r *Rule) decide(seed uint64, i int, operation string, n uint64) (bool, time.Duration) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(i)<<32^n)
	copy(key[16:], operation) // the first 16 bytes of the names of operations differ
	random := rand.New(rand.NewChaCha8(key))
	if random.Float64() >= r.Probability {
		return false, 0
	}
	delay := r.Delay
	if r.MaxDelay > r.Delay {
		delay += time.Duration(random.Int64N(int64(r.MaxDelay - r.Delay)))
	}
	return true, delay
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// execute executes r, unless its table is being deleted.
func (h *Handler) execute(w http.ResponseWriter, r *http.Request, e server.Event) {
	if h.anyDeleted() {
		if e.Operation == "CreateTable" {
			r, e.Table = createdTable(r)
		}
		if h.isDeleted(name{e.Account, edm.FoldTableName(e.Table)}) {
			h.observe(Fault{e.Operation, e.Account, e.Table, TableBeingDeleted, 0})
			h.refuse(w, r, errTableBeingDeleted)
			return
		}
	}
	h.next.ServeHTTP(w, r)
}

// delete executes a request that deletes a table. If it succeeds, the name of the table
// cannot be used for d.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, e server.Event, d time.Duration) {
	n := name{e.Account, edm.FoldTableName(e.Table)}
	// Before the client gets the response, since it may use the name at once.
	h.execute(&statusWriter{w, func(status int) {
		if status == http.StatusNoContent {
			h.setDeleted(n, d)
		}
	}}, r, e)
}

// setDeleted makes the name of a table unusable for d.
func (h *Handler) setDeleted(n name, d time.Duration) {
	now := h.o.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.deleted, func(_ name, until time.Time) bool { return !until.After(now) })
	h.deleted[n] = now.Add(d)
}

func (h *Handler) anyDeleted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.deleted) > 0
}

func (h *Handler) isDeleted(n name) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	until, ok := h.deleted[n]
	return ok && until.After(h.o.Now())
}

// maxTableBytes limits the body that createdTable reads.
const maxTableBytes = 64 << 10

// createdTable returns the name in the body of CreateTable, "" if it is not valid, and the
// request with its whole body.
func createdTable(r *http.Request) (*http.Request, string) {
	if r.Body == nil {
		return r, ""
	}
	read, err := io.ReadAll(io.LimitReader(r.Body, maxTableBytes))
	copied := *r
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failingReader{err}
	}
	copied.Body = readCloser{io.MultiReader(bytes.NewReader(read), rest), r.Body}
	table, err := odata.ParseTable(bytes.TrimPrefix(read, []byte("\ufeff"))) // the server skips a byte order mark
	if err != nil {
		return &copied, ""
	}
	return &copied, table
}

type readCloser struct {
	io.Reader
	io.Closer
}

type failingReader struct{ err error }

// Read returns the error.
func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// statusWriter calls before with the status of a response before it is sent.
type statusWriter struct {
	http.ResponseWriter
	before func(status int)
}

// WriteHeader sends the head of the response.
func (w *statusWriter) WriteHeader(status int) {
	w.before(status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer of the connection, for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard is the response of a request whose connection is cut.
type discard struct{ header http.Header }

// Header returns the header of the response.
func (d discard) Header() http.Header { return d.header }

// Write ignores a part of the body.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader ignores the status.
func (discard) WriteHeader(int) {}

// String describes a fault in a log.
func (f Fault) String() string {
	s := string(f.Answer)
	if f.Delay > 0 && f.Answer != Delay {
		s += " after"
	}
	if f.Delay > 0 {
		s += fmt.Sprintf(" %v", f.Delay)
	}
	return s
}
