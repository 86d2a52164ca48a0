package rot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestInflict checks the results of damages with a known effect.
func TestInflict(t *testing.T) {
	subjects, err := Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := subjects[0]
	log := walName(t, closed)
	other := closed
	other.sum++
	flip := func(*vfs.Mem) error { return nil }
	for _, c := range []struct {
		name string
		s    Subject
		d    damage
		want string // part of the violation; empty for none
	}{
		{"found", closed, damage{what: "header", file: log, off: 0, do: patch(log, 0, []byte("x"))}, ""},
		{"another file named", closed, damage{what: "header", file: "MANIFEST", off: 0, do: patch(log, 0, []byte("x"))}, "the error names another file"},
		{"wrong data", other, damage{what: "nothing", file: "LOCK", off: 0, do: flip}, "wrong data"},
		{"not found", closed, damage{what: "nothing", file: "MANIFEST", off: 0, do: flip}, "it is not detected"},
		{"harmless", closed, damage{what: "nothing", file: "LOCK", off: 0, do: flip}, ""},
		{"panic", closed, damage{what: "panic", file: "LOCK", off: 0, do: func(*vfs.Mem) error { panic("here") }}, "panic: here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Report
			err := c.s.inflict(t.Context(), &c.d, workload.NewCache(), &r)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestSample does some damages of each kind.
func TestSample(t *testing.T) {
	subjects, err := Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	for i := range subjects {
		jobs, err := subjects[i].Jobs(Options{Seed: 1, Stride: 97}, &r)
		if err != nil {
			t.Fatal(err)
		}
		for j := 0; j < len(jobs); j += 4 {
			if err := jobs[j](t.Context()); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	}
	if r.Total.Load() == 0 || r.Detected.Load() == 0 {
		t.Errorf("%d damages, %d detected", r.Total.Load(), r.Detected.Load())
	}
}

func walName(t *testing.T, s Subject) string {
	t.Helper()
	names, err := s.disk.List(workload.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			return name
		}
	}
	t.Fatalf("no log among %q", names)
	return ""
}
