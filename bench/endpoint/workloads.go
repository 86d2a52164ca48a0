package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/bench"
)

const (
	tableLoaded   = "BenchLoaded"
	tableInserted = "BenchInserted"
)

// workload is a sequence of similar calls. step makes call i and returns the number of
// its entities.
type workload struct {
	name  string
	calls int
	step  func(c *conn, i int) (entities int, err error)
	// unit is the unit of the rate: entities or queries, which are calls.
	unit string
	// conns limits the connections, unless 0, below the number in the settings.
	conns int
	// pages is set if a call makes several requests and the latencies are those of
	// the requests.
	pages bool
}

// harness runs workloads on a target.
type harness struct {
	s    settings
	t    *target
	data *dataset
}

func newHarness(s settings, t *target) *harness {
	return &harness{s: s, t: t, data: newDataset(s.entities, s.seed)}
}

func (b *harness) workloads() []workload {
	return []workload{
		{name: "batch", calls: b.s.entities / perBatch, step: b.batch, unit: "entities"},
		{name: "insert", calls: b.s.inserts, step: b.insert, unit: "entities"},
		{name: "get", calls: b.s.gets, step: b.get, unit: "entities"},
		{name: "scan", calls: b.s.scans, step: b.scan, unit: "entities", pages: true},
		{name: "filter", calls: b.s.filters, step: b.filter, unit: "queries", conns: 1},
	}
}

// measure runs the workloads and repetitions that the settings select.
func (b *harness) measure(ctx context.Context, progress io.Writer) (*report, error) {
	runs := map[string][]result{}
	for rep := range b.s.reps {
		if err := b.repetition(ctx, progress, rep, runs); err != nil {
			return nil, err
		}
	}
	r := &report{Host: b.t.host, Seed: b.s.seed, Entities: b.s.entities, Conns: b.s.conns, Reps: b.s.reps}
	for _, w := range b.workloads() {
		if len(runs[w.name]) > 0 {
			r.Results = append(r.Results, median(runs[w.name]))
		}
	}
	return r, nil
}

// repetition makes the tables and runs each selected workload once.
func (b *harness) repetition(ctx context.Context, progress io.Writer, rep int, runs map[string][]result) error {
	for _, table := range []string{tableLoaded, tableInserted} {
		if err := b.makeTable(table); err != nil {
			return err
		}
	}
	for _, w := range b.workloads() {
		if !b.s.selects(w.name) && w.name != "batch" {
			continue
		}
		fmt.Fprintf(progress, "%s: %d calls, %d of %d\n", w.name, w.calls, rep+1, b.s.reps)
		res, err := b.run(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		runs[w.name] = append(runs[w.name], res)
	}
	return nil
}

// makeTable makes an empty table.
func (b *harness) makeTable(table string) error {
	if err := b.dropTable(table); err != nil {
		return err
	}
	return b.once(request{method: "POST", path: "Tables", contentType: "application/json", body: []byte(`{"TableName":"` + table + `"}`)}, 204)
}

func (b *harness) dropTables() error {
	return errors.Join(b.dropTable(tableLoaded), b.dropTable(tableInserted))
}

func (b *harness) dropTable(table string) error {
	return b.once(request{method: "DELETE", path: "Tables('" + table + "')"}, 204, 404)
}

// once makes one request on a new connection.
func (b *harness) once(q request, statuses ...int) error {
	c, err := dial(b.t)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.do(q); err != nil {
		return err
	}
	if slices.Contains(statuses, c.response.status) {
		return nil
	}
	return c.response.want(statuses[0])
}

var accepted = []byte("HTTP/1.1 204 ")

func (b *harness) batch(c *conn, i int) (int, error) {
	body := b.data.appendBatch(nil, b.t, i)
	if err := c.do(request{method: "POST", path: "$batch", contentType: batchType, body: body}); err != nil {
		return 0, err
	}
	if err := c.response.want(202); err != nil {
		return 0, err
	}
	if n := bytes.Count(c.response.body, accepted); n != perBatch {
		return 0, fmt.Errorf("%d of %d inserts of a batch were accepted: %.500s", n, perBatch, c.response.body)
	}
	return perBatch, nil
}

func (b *harness) insert(c *conn, i int) (int, error) {
	body := b.data.appendEntity(make([]byte, 0, 2048), tableInserted, i)
	if err := c.do(request{method: "POST", path: tableInserted, contentType: "application/json", body: body}); err != nil {
		return 0, err
	}
	return 1, c.response.want(204)
}

func (b *harness) get(c *conn, i int) (int, error) {
	n := int(mix(uint64(i)^b.s.seed<<32) % uint64(b.data.n))
	if err := c.do(request{method: "GET", path: b.data.entityPath(tableLoaded, n)}); err != nil {
		return 0, err
	}
	return 1, c.response.want(200)
}

// scan reads all entities, a page at a time.
func (b *harness) scan(c *conn, _ int) (int, error) {
	n, err := b.pages(c, "")
	if err == nil && n != b.data.n {
		err = fmt.Errorf("a scan gave %d of %d entities", n, b.data.n)
	}
	return n, err
}

// filter finds one entity in a thousand by a property that is not in the key.
func (b *harness) filter(c *conn, i int) (int, error) {
	wanted := i % matching
	n, err := b.pages(c, fmt.Sprintf("$filter=Rating%%20eq%%20%d", wanted))
	if want := (b.data.n - wanted + matching - 1) / matching; err == nil && n != want {
		err = fmt.Errorf("a filter gave %d of %d entities", n, want)
	}
	return n, err
}

var keyMember = []byte(`"RowKey":`)

// pages follows a query to its end and counts its entities.
func (b *harness) pages(c *conn, query string) (int, error) {
	n := 0
	q := request{method: "GET", path: tableLoaded + "()", query: query}
	for {
		if err := c.do(q); err != nil {
			return n, err
		}
		if err := c.response.want(200); err != nil {
			return n, err
		}
		n += bytes.Count(c.response.body, keyMember)
		next := c.response.continuation()
		if next == "" {
			return n, nil
		}
		q.query = next
		if query != "" {
			q.query = query + "&" + next
		}
	}
}

// lane is a connection with its results.
type lane struct {
	c         *conn
	latencies []time.Duration
	calls     int
	entities  int
	err       error
}

// run makes the calls of a workload on all connections. It connects before it starts the
// clock.
func (b *harness) run(ctx context.Context, w workload) (result, error) {
	lanes := make([]*lane, min(b.s.conns, w.calls))
	if w.conns > 0 {
		lanes = lanes[:min(w.conns, len(lanes))]
	}
	for i := range lanes {
		t := b.t
		if n := i % (len(b.s.servers) + 1); n > 0 {
			t = t.on(b.s.servers[n-1])
		}
		c, err := dial(t)
		if err != nil {
			return result{}, err
		}
		defer c.close()
		lanes[i] = &lane{c: c, latencies: make([]time.Duration, 0, 2*w.calls/len(lanes)+1)}
	}
	var next atomic.Int64
	var running sync.WaitGroup
	before := usageOf(b.s.pids)
	start := time.Now()
	for _, l := range lanes {
		running.Go(func() { l.work(ctx, w, &next) })
	}
	running.Wait()
	wall := time.Since(start)
	return summarize(w, lanes, wall, before, usageOf(b.s.pids))
}

func (l *lane) work(ctx context.Context, w workload, next *atomic.Int64) {
	for ctx.Err() == nil {
		i := int(next.Add(1) - 1)
		if i >= w.calls {
			return
		}
		begin := time.Now()
		l.c.timed = w.pages
		n, err := w.step(l.c, i)
		if err != nil {
			l.err = err
			next.Store(int64(w.calls))
			return
		}
		if w.pages {
			l.latencies = append(l.latencies, l.c.latencies...)
			l.c.latencies = l.c.latencies[:0]
		} else {
			l.latencies = append(l.latencies, time.Since(begin))
		}
		l.calls++
		l.entities += n
	}
	l.err = ctx.Err()
}

// usage is the CPU time that the service, this program and the machine have used up to
// now, and the memory of the service.
type usage struct {
	service        []time.Duration // by process
	own, machine   time.Duration
	resident, peak int64
	known          bool // the service's
}

func usageOf(pids []int) usage {
	u := usage{own: bench.CPUTime(), machine: machineTime()}
	u.service, u.known = processTime(pids)
	if u.known {
		u.resident, u.peak = memory(pids[0])
	}
	return u
}
