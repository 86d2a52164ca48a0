package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
)

// mixes returns the mixes of the Yahoo! Cloud Serving Benchmark: 4 goroutines, keys
// drawn from a Zipf distribution with the exponent 0.99, entities replaced whole.
//
//	A  half gets, half updates      C  gets
//	B  95 % gets, 5 % updates       E  95 % scans of 1 to 100 entities, 5 % inserts
//	F  half gets, half gets with an update of the same entity
func mixes() []Workload {
	var list []Workload
	for _, m := range []mix{
		{name: "A", updates: 0.5},
		{name: "B", updates: 0.05},
		{name: "C"},
		{name: "E", scans: 0.95},
		{name: "F", updates: 0.5, reads: true},
	} {
		const writers, short, long = 4, 100_000, 300_000
		w := Workload{
			Name: "ycsb/mix=" + m.name, Op: "request", Step: "request", Parallel: writers, Start: Loaded,
			ReadOnly: m.updates == 0 && m.scans == 0, warm: warmGets, run: m.run, ops: times(long),
		}
		if m.scans > 0 {
			w.ops = func(n int) int { return min(short, 10*n) } // the keys for inserts are as many as entities
		}
		list = append(list, w)
	}
	return list
}

// mix is the work of one mix.
type mix struct {
	name    string
	updates float64 // share of updates
	reads   bool    // updates read the entity first
	scans   float64 // share of scans; the others insert
}

const maxScan = 100 // entities of a scan of mix E

func (m mix) run(r *Run, wl Workload, ops int) error {
	z := newZipf(r.Data.Len())
	var inserted atomic.Int64
	r.want = want{rows: int64(r.Data.Len())}
	err := r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
		d := draws{zipf: z, rnd: rand.New(rand.NewPCG(r.Seed, uint64(w.id)))}
		for i := from; i < to; i++ {
			if err := w.sampled(i, func() error { return m.step(r, w, &d, i, &inserted) }); err != nil {
				return err
			}
		}
		return nil
	})
	if wl.ReadOnly {
		m.expectReads(r, wl, ops, z)
	}
	r.want.rows += inserted.Load()
	return err
}

// expectReads draws the reads of all workers again.
func (m mix) expectReads(r *Run, wl Workload, ops int, z *zipf) {
	r.want = want{}
	for id := range wl.Parallel {
		d := draws{zipf: z, rnd: rand.New(rand.NewPCG(r.Seed, uint64(id)))}
		n := ops*(id+1)/wl.Parallel - ops*id/wl.Parallel
		r.expect(n, func(int) int {
			d.rnd.Float64()
			return d.index()
		})
	}
}

// draws is the random source of one worker.
type draws struct {
	zipf *zipf
	rnd  *rand.Rand
}

// index returns the index of an entity in the random order, so that the frequent ones
// are spread over the table.
func (d *draws) index() int { return d.zipf.draw(d.rnd) }

// step carries out one request.
func (m mix) step(r *Run, w *worker, d *draws, i int, inserted *atomic.Int64) error {
	p := d.rnd.Float64()
	if m.scans > 0 {
		if p >= m.scans {
			return m.insert(r, w, i, inserted)
		}
		limit := 1 + d.rnd.IntN(maxScan)
		return w.session.Scan(Scan{From: r.Data.Key(r.random(d.index())), Limit: limit}, &w.fold)
	}
	at := d.index()
	key := r.Data.Key(r.random(at))
	if p >= m.updates || m.reads {
		if err := w.get(key, true); err != nil {
			return err
		}
	}
	if p >= m.updates {
		return nil
	}
	return w.update(r, r.random(at), i)
}

// update replaces the properties of an entity.
func (w *worker) update(r *Run, entity, content int) error {
	r.Data.Fill(entity, content, &w.batch[0])
	return w.session.Put(w.batch[:1])
}

// insert writes an entity with a new key.
func (m mix) insert(r *Run, w *worker, content int, inserted *atomic.Int64) error {
	n := int(inserted.Add(1)) - 1
	if n >= r.Data.Len() {
		return fmt.Errorf("mix %s: %d inserts: there are no more keys", m.name, n)
	}
	e := &w.batch[0]
	r.Data.Fill(0, content, e)
	e.Key = r.Data.Missing(r.random(n))
	return w.session.Put([]edm.Entity{*e})
}

// zipf draws numbers from 0 to n-1 with probabilities proportional to 1/(i+1)^0.99, as
// Gray et al. describe in "Quickly generating billion-record synthetic databases".
// math/rand has no exponent below 1.
type zipf struct {
	n, alpha, zetaN, eta float64
}

const zipfTheta = 0.99

func newZipf(n int) *zipf {
	zeta := func(n int) float64 {
		sum := 0.0
		for i := 1; i <= n; i++ {
			sum += 1 / math.Pow(float64(i), zipfTheta)
		}
		return sum
	}
	z := &zipf{n: float64(n), alpha: 1 / (1 - zipfTheta), zetaN: zeta(n)}
	z.eta = (1 - math.Pow(2/z.n, 1-zipfTheta)) / (1 - zeta(2)/z.zetaN)
	return z
}

func (z *zipf) draw(rnd *rand.Rand) int {
	u := rnd.Float64()
	switch uz := u * z.zetaN; {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(0.5, zipfTheta):
		return 1
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}
