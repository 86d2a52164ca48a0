package faults

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// optimist reports an unknown outcome as success.
type optimist struct {
	store.Store
	last edm.Ticks
}

func (o *optimist) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	results, err := o.Store.Apply(ctx, table, ops...)
	if errors.Is(err, store.ErrOutcomeUnknown) {
		results, err = nil, nil
		for range ops {
			o.last++
			results = append(results, store.Result{Timestamp: o.last, ETag: o.last.ETag()})
		}
	}
	for _, r := range results {
		o.last = max(o.last, r.Timestamp)
	}
	return results, err
}

// TestFindsEarlyAck checks that Run finds a store that acknowledges writes although its log
// failed.
func TestFindsEarlyAck(t *testing.T) {
	var counts Counts
	err := Run(t.Context(), Options{
		Seed: 1, Profile: workload.Singles, Steps: 8, Sites: NewSites(),
		Store: func(s store.Store) store.Store { return &optimist{Store: s} },
	}, &counts)
	var v *Violation
	if !errors.As(err, &v) {
		t.Fatalf("got %v after %d failures, want a violation", err, counts.Runs.Load())
	}
	t.Log(v)
}

func TestRun(t *testing.T) {
	var counts Counts
	sites := NewSites()
	if err := Run(t.Context(), Options{Seed: 1, Profile: workload.Singles, Steps: 6, Stride: 5, Sites: sites}, &counts); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, s := range sites.List() {
		if !strings.HasPrefix(s.Func, "github.com/tablerock-db/tablerock/") || inVFS(s.Func) || s.Ops < s.Failed {
			t.Errorf("got site %+v, want a function above the file system", s)
		}
		if s.Failed > 0 {
			failed++
		}
	}
	if counts.Runs.Load() == 0 || failed == 0 {
		t.Errorf("%d runs failed operations of %d call sites", counts.Runs.Load(), failed)
	}
}
