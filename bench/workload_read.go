package bench

import (
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
)

// warmScan scans the table, so that a cache of sufficient size has all of it.
func warmScan(r *Run, _ Workload) error {
	var f Fold
	return r.db.Session().Scan(Scan{}, &f)
}

// warmGets scans the table and gets some of its entities: a store may keep blocks in
// another form for gets.
func warmGets(r *Run, w Workload) error {
	if err := warmScan(r, w); err != nil {
		return err
	}
	const n = 50_000
	var f Fold
	s := r.db.Session()
	for i := range min(n, r.Data.Len()) {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if _, err := s.Get(r.Data.Key(r.random(-i-1+r.Data.Len())), &f); err != nil {
			return err
		}
	}
	return nil
}

// lookups gets single entities in random order.
func lookups(missing bool) func(*Run, Workload, int) error {
	return func(r *Run, wl Workload, ops int) error {
		if !missing {
			r.expect(ops, all)
		}
		r.want.known = true
		return r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
			for i := from; i < to; i++ {
				key := r.Data.Key(r.random(i))
				if missing {
					key = r.Data.Missing(r.random(i))
				}
				if err := w.sampled(i, func() error { return w.get(key, !missing) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// get gets an entity that must be found or not.
func (w *worker) get(key edm.Key, want bool) error {
	found, err := w.session.Get(key, &w.fold)
	if err == nil && found != want {
		err = fmt.Errorf("get of %v: found is %v, want %v", key, found, want)
	}
	return err
}

// scanPartitions scans partitions in random order until ops entities are read.
func scanPartitions(r *Run, _ Workload, ops int) error {
	shape := r.Data.Shape()
	contents := make([]int, r.Data.Len()) // of each entity of Loaded
	for i := range contents {
		contents[r.random(i)] = i
	}
	partition := func(i int) int { return r.random(i) % shape.Partitions }
	for i := 0; i*shape.Rows < ops; i++ {
		r.expect(shape.Rows, func(j int) int { return contents[partition(i)*shape.Rows+j] })
	}
	return r.parallel(1, ops, func(w *worker, _, _ int) error {
		for i := 0; i*shape.Rows < ops; i++ {
			s := Scan{Partition: r.Data.Partition(partition(i))}
			scan := func() error { return w.session.Scan(s, &w.fold) }
			if shape.Rows >= sampleEvery {
				if err := w.timed(scan); err != nil {
					return err
				}
				continue
			}
			if err := w.sampled(i, scan); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanTable scans the whole table, with the filter of the workload, until ops entities
// are read.
func scanTable(r *Run, wl Workload, ops int) error {
	s := Scan{}
	matches := func(int) bool { return true }
	if wl.match != 0 {
		s.Match = r.match
		var e edm.Entity
		matches = func(i int) bool {
			r.Data.Fill(i, i, &e)
			return r.match.Value(e.Properties[r.match.Prop].Value)
		}
	}
	passes := (ops + r.Data.Len() - 1) / r.Data.Len()
	for i := range r.Data.Len() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if matches(i) {
			r.expect(passes, func(int) int { return i })
		}
	}
	return r.parallel(1, ops, func(w *worker, _, _ int) error {
		for range passes {
			if err := w.timed(func() error { return w.session.Scan(s, &w.fold) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// stepTable steps over the whole table until ops entities are counted.
func stepTable(r *Run, _ Workload, ops int) error {
	passes := (ops + r.Data.Len() - 1) / r.Data.Len()
	r.want.rows = int64(passes) * int64(r.Data.Len())
	var counted int64
	err := r.parallel(1, ops, func(w *worker, _, _ int) error {
		for range passes {
			err := w.timed(func() error {
				n, err := w.session.Count()
				counted += n
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.result.Rows = counted
	return err
}
