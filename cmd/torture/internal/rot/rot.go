package rot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
)

// Report has the results. Its counters may be read while jobs run.
type Report struct {
	Total    atomic.Int64
	Detected atomic.Int64
	Harmless atomic.Int64

	mu sync.Mutex
	// +checklocks:mu
	bytes map[string][]int64 // offsets of harmless flips and sectors, by file and kind
	// +checklocks:mu
	other []string // other harmless damages
}

// Violation is damage that was not detected, or that had a wrong effect.
type Violation struct {
	Subject, File, What string
	Err                 error
}

// Error describes the damage and its effect.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s database, %s: %s: %v", v.Subject, v.File, v.What, v.Err)
}

// Unwrap returns the effect.
func (v *Violation) Unwrap() error { return v.Err }

// Jobs returns functions that together do all damages of s.
func (s *Subject) Jobs(o Options, r *Report) ([]func(context.Context) error, error) {
	list, err := s.damages(o)
	if err != nil {
		return nil, err
	}
	var jobs []func(context.Context) error
	for chunk := range slices.Chunk(list, 64) {
		jobs = append(jobs, func(ctx context.Context) error {
			cache := workload.NewCache()
			for i := range chunk {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := s.inflict(ctx, &chunk[i], cache, r); err != nil {
					return &Violation{s.Name, chunk[i].file, chunk[i].what, err}
				}
			}
			return nil
		})
	}
	return jobs, nil
}

// inflict does one damage and checks its effect.
func (s *Subject) inflict(ctx context.Context, d *damage, cache *engine.Cache, r *Report) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r.Total.Add(1)
	disk := s.disk.Clone()
	if err := d.do(disk); err != nil {
		return err
	}
	db, err := engine.Open(workload.Dir, workload.EngineOptions(disk, workload.NewClock(), cache))
	if err != nil {
		return r.detected(d, err)
	}
	defer db.Close()
	got, err := oracle.Scan(ctx, db)
	if err != nil {
		return r.detected(d, err)
	}
	if got.Sum != s.sum {
		return errors.New("wrong data was read without an error")
	}
	report, err := db.Verify(ctx)
	if err != nil {
		return r.detected(d, err)
	}
	for _, f := range report.Findings {
		if d.loose || f.File == d.file {
			r.Detected.Add(1)
			return nil
		}
	}
	if len(report.Findings) > 0 {
		return fmt.Errorf("verify names another file: %v", report.Findings)
	}
	reason := s.reason(d)
	if reason == "" {
		return errors.New("it is not detected, and not known to be harmless")
	}
	r.harmless(s, d, reason)
	return nil
}

// reason returns the reason why an undetected damage is harmless, or "" if there is none.
func (s *Subject) reason(d *damage) string {
	kind, _ := filename.Parse(d.file)
	switch {
	case d.file == filename.Lock:
		return "the owner in the lock file is only for people"
	case d.off < 0 && strings.HasPrefix(d.what, "a copy"):
		return "the manifest does not list it"
	case kind == filename.WAL && d.off < 0 && strings.Contains(d.what, "garbage appended"):
		return "the log ends before it"
	case kind == filename.WAL && d.off >= 0:
		return s.afterLog(d)
	}
	return ""
}

// afterLog returns the reason if a damage to a segment is after its records. A sector counts
// as damaged from its first changed byte.
func (s *Subject) afterLog(d *damage) string {
	for _, l := range s.m.Logs {
		if filename.Make(filename.WAL, l.Number) == d.file && d.off+sectorBytes > max(l.Sealed, l.Proven) {
			return "the log ends before it, as the manifest states"
		}
	}
	return ""
}

// detected checks that an error reports damage in the damaged file.
func (r *Report) detected(d *damage, err error) error {
	var c *store.CorruptError
	switch {
	case errors.As(err, &c):
		if !d.loose && c.File != d.file {
			return fmt.Errorf("the error names another file: %w", err)
		}
	case d.loose && errors.Is(err, store.ErrNotDatabase):
	default:
		return fmt.Errorf("not reported as damage: %w", err)
	}
	r.Detected.Add(1)
	return nil
}

func (r *Report) harmless(s *Subject, d *damage, reason string) {
	r.Harmless.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.off >= 0 {
		if r.bytes == nil {
			r.bytes = map[string][]int64{}
		}
		kind := s.Name + ": " + d.file + ", " + strings.Fields(d.what)[0] + ": " + reason
		r.bytes[kind] = append(r.bytes[kind], d.off)
		return
	}
	r.other = append(r.other, fmt.Sprintf("%s: %s %s: %s", s.Name, d.file, d.what, reason))
}

// Lines lists the harmless damages by file and kind.
func (r *Report) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for kind, offs := range r.bytes {
		slices.Sort(offs)
		lines = append(lines, fmt.Sprintf("%s (%d, from %d to %d)", kind, len(offs), offs[0], offs[len(offs)-1]))
	}
	slices.Sort(lines)
	slices.Sort(r.other)
	return append(lines, r.other...)
}

// Describe lists the files of s with their sizes.
func (s *Subject) Describe() string {
	var b strings.Builder
	names, _ := s.disk.List(workload.Dir)
	for _, name := range names {
		info, _ := s.disk.Stat(path.Join(workload.Dir, name))
		fmt.Fprintf(&b, " %s (%d bytes)", name, info.Size)
	}
	return fmt.Sprintf("%s database:%s", s.Name, b.String())
}
