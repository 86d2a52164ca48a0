package recent

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/filter"
)

// TestBuckets requires that each duration is at most the bound of its bucket, and at most a
// quarter below it.
func TestBuckets(t *testing.T) {
	for us := int64(0); us < 5_000_000; us += 1 + us/97 {
		d := time.Duration(us) * time.Microsecond
		bound := boundOf(bucketOf(d))
		if ms := float64(us) / 1000; ms >= bound || bound > ms*1.26+0.0011 {
			t.Fatalf("%v is in the bucket %d up to %v ms", d, bucketOf(d), bound)
		}
	}
	if bucketOf(1000*time.Hour) != buckets-1 || bucketOf(-1) != 0 {
		t.Error("durations out of range have no bucket")
	}
}

func TestMonitor(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := New(func() time.Time { return now })
	for i := range 300 {
		m.Observe(&Request{Operation: "QueryEntity", Table: fmt.Sprint("T", i), Status: http.StatusOK, Duration: time.Millisecond, Examined: 1, Returned: 1})
	}
	m.Observe(&Request{Operation: "InsertEntity", Write: true, Status: http.StatusConflict, Duration: 100 * time.Millisecond})
	r, last, shapes := m.Read(1000)
	if r.Count != 301 || r.Writes != 1 || r.Failures != 1 || r.Examined != 300 || len(shapes) != 0 {
		t.Errorf("the counts are %+v", r)
	}
	if len(last) != kept || last[0].Operation != "InsertEntity" || last[1].Table != "T299" || last[kept-1].Table != "T45" {
		t.Errorf("the last requests are %d: %+v", len(last), last[:2])
	}
	if r.Latency.Count != 301 || r.Latency.P50 < 1 || r.Latency.P50 > 1.3 || r.Latency.Max != 100 || r.Latency.P99 > 1.3 {
		t.Errorf("the latency is %+v", r.Latency)
	}
	now = now.Add(time.Minute)
	if r, _, _ := m.Read(0); r.Latency.Count != 0 || r.Count != 301 {
		t.Errorf("a minute later the latency is %+v", r.Latency)
	}
}

// TestShapes gives slow queries of one shape and of many.
func TestShapes(t *testing.T) {
	m := New(time.Now)
	for i := range 10 {
		e := filter.MustParse(fmt.Sprintf("PartitionKey eq 'secret%d' and (Total gt %d or not Paid)", i, i))
		m.Observe(&Request{Account: "a", Table: "T", Duration: time.Duration(20+i) * time.Millisecond, Examined: 5, Filter: e})
	}
	m.Observe(&Request{Account: "a", Table: "T", Duration: time.Millisecond, Filter: filter.MustParse("fast eq 1")})
	_, last, shapes := m.Read(2)
	want := "(PartitionKey eq ? and (Total gt ? or not (Paid eq ?)))"
	if len(shapes) != 1 || shapes[0].Shape != want || shapes[0].Count != 10 || shapes[0].Examined != 50 || !strings.Contains(shapes[0].Example, "secret9") {
		t.Errorf("the shapes are %+v", shapes)
	}
	if last[0].Filter != "" || !strings.Contains(last[1].Filter, "secret9") {
		t.Errorf("the last requests are %+v", last)
	}
	long := filter.MustParse("A eq '" + strings.Repeat("x", 10_000) + "'")
	for i := range 3 * maxShapes {
		m.Observe(&Request{Table: fmt.Sprint("T", i), Examined: slowRows, Filter: long})
	}
	_, last, shapes = m.Read(kept)
	if len(shapes) != maxShapes {
		t.Errorf("%d shapes are kept", len(shapes))
	}
	for _, s := range shapes {
		if len(s.Example) > maxText+3 || len(s.Shape) > maxText+3 {
			t.Fatalf("a shape has %d and %d bytes", len(s.Example), len(s.Shape))
		}
	}
	if len(last[0].Filter) > maxText+3 {
		t.Errorf("a filter of %d bytes is kept", len(last[0].Filter))
	}
}

// BenchmarkObserve measures what a request costs.
func BenchmarkObserve(b *testing.B) {
	m := New(time.Now)
	q := &Request{Operation: "QueryEntity", Account: "a", Table: "T", Status: 200, Duration: 50 * time.Microsecond, Examined: 1, Returned: 1}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			m.Observe(q)
		}
	})
}
