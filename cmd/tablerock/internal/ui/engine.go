package ui

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/livestate"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// Database is an open database whose state is shown.
type Database struct {
	DB           *engine.DB
	FS           vfs.FS // the default is that of the operating system
	Dir          string // with slashes
	SegmentBytes int64
	Jobs         *Jobs // nil if they are not known
}

// State returns the state of the engine.
func (d *Database) State(account string) (livestate.Engine, error) {
	s, err := d.DB.Stats()
	if err != nil {
		return livestate.Engine{}, err
	}
	running, last := d.Jobs.list()
	e := livestate.Engine{
		Account: account, Figures: figures(&s), SegmentBytes: d.SegmentBytes,
		Segments: []livestate.Segment{}, Memtables: []livestate.Memtable{}, Tiers: []livestate.Tier{}, Jobs: last,
	}
	if err := d.DB.Failure(); err != nil {
		e.Failure = err.Error()
	}
	flushing := 0
	for _, j := range running {
		if j.Kind == kindFlush {
			flushing = j.Inputs
		}
	}
	for i, m := range s.Memtables {
		state := "frozen"
		switch {
		case i == len(s.Memtables)-1:
			state = "active"
		case i < flushing:
			state = "flushing"
		}
		e.Segments = append(e.Segments, livestate.Segment{Number: uint64(m.Segment), Bytes: m.LogBytes, State: state})
		e.Memtables = append(e.Memtables, livestate.Memtable{Segment: uint64(m.Segment), Rows: m.Rows, Bytes: m.Bytes, State: state})
	}
	return e, d.addFiles(&e, running)
}

// figures returns the numbers of s by name: durations in seconds, times as text.
func figures(s *engine.Stats) map[string]any {
	all := map[string]any{}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		switch value := v.Field(i).Interface().(type) {
		case time.Duration:
			all[v.Type().Field(i).Name] = value.Seconds()
		case edm.Ticks:
			all[v.Type().Field(i).Name] = value.String()
		case int, int64, uint64, float64, bool:
			all[v.Type().Field(i).Name] = value
		}
	}
	return all
}

// addFiles adds the tiers of the manifest and the running jobs, with what they have written
// so far: sstables that the manifest does not list yet. Without a job, an import writes them.
func (d *Database) addFiles(e *livestate.Engine, running []job) error {
	fsys := d.FS
	if fsys == nil {
		fsys = vfs.OS()
	}
	m, err := manifest.Read(fsys, d.Dir)
	if err != nil {
		return err
	}
	listed, next := tiersOf(m, e, inputsOf(running)), m.NextFile
	names, err := fsys.List(d.Dir)
	if err != nil {
		return err
	}
	load := &job{Work: livestate.Work{Kind: "load", State: "running", What: "sstables of an import"}}
	for _, name := range names {
		kind, number := filename.Parse(name)
		newer := slices.ContainsFunc(running, func(j job) bool { return number > j.after })
		if kind != filename.SSTable || number < next && !newer || listed[number] {
			continue // an older one waits for its removal
		}
		info, err := fsys.Stat(d.Dir + "/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		of := writerOf(running, number, load)
		of.Outputs++
		of.Written += info.Size
	}
	if load.Outputs > 0 {
		running = append(running, *load)
	}
	for _, j := range running {
		e.Jobs = slices.Insert(e.Jobs, 0, j.Work)
	}
	return nil
}

// inputsOf returns the numbers of the sstables that jobs read.
func inputsOf(running []job) map[uint64]bool {
	all := make(map[uint64]bool)
	for _, j := range running {
		for _, number := range j.inputs {
			all[number] = true
		}
	}
	return all
}

// writerOf returns the job that writes an sstable, or none. The numbers of a flush are greater than
// that of its run, and a compaction does not write during a flush.
func writerOf(running []job, number uint64, none *job) *job {
	of := none
	for i := range running {
		if j := &running[i]; j.Kind != kindFlush || number > j.after {
			of = j
		}
	}
	return of
}

// tiersOf adds the tiers of a manifest, with what of the sstables in moving, and returns the
// numbers of its files.
func tiersOf(m *manifest.Manifest, e *livestate.Engine, moving map[uint64]bool) map[uint64]bool {
	m.Sort()
	listed := make(map[uint64]bool, len(m.Files))
	var last *manifest.File
	for i := range m.Files {
		f := &m.Files[i]
		if last == nil || last.Tier != f.Tier {
			name := "tier " + strconv.FormatUint(uint64(f.Tier), 10)
			if f.Tier == manifest.BottomTier {
				name = "bottom"
			}
			e.Tiers = append(e.Tiers, livestate.Tier{Name: name})
		}
		t := &e.Tiers[len(e.Tiers)-1]
		// The bottom is one run, whatever numbers its files have.
		if len(t.Runs) == 0 || f.Tier != manifest.BottomTier && last.Run != f.Run {
			t.Runs = append(t.Runs, livestate.Run{Number: f.Run})
		}
		r := &t.Runs[len(t.Runs)-1]
		if !listed[f.Number] { // else another range of the same file
			r.SSTables++
			r.Bytes += f.Size
			if moving[f.Number] {
				r.Moving += f.Size
			}
			listed[f.Number] = true
		}
		r.Entries += f.Entries
		r.Tombstones += f.Tombstones
		last = f
	}
	return listed
}

// keptJobs is the number of jobs that are kept.
const keptJobs = 20

// The kinds of a livestate.Work in the log.
const (
	kindFlush      = "flush"
	kindCompaction = "compaction"
)

// job is a flush or compaction under way.
type job struct {
	livestate.Work
	inputs []uint64 // the numbers of the sstables that a compaction reads
	after  uint64   // the sstables that it writes have greater numbers
}

// Jobs keeps the last flushes and compactions of an engine, and those under way: it is a
// handler of its log. It is safe for concurrent use.
type Jobs struct {
	mu      sync.Mutex
	running []job            // at most one of each kind, oldest first; +checklocks:mu
	last    []livestate.Work // newest first; +checklocks:mu
}

// list returns the jobs under way, oldest first, and those done, newest first.
func (j *Jobs) list() (running []job, done []livestate.Work) {
	if j == nil {
		return nil, []livestate.Work{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	running = slices.Clone(j.running)
	for i := range running {
		running[i].Ms = float64(time.Since(running[i].At)) / float64(time.Millisecond)
	}
	return running, append([]livestate.Work{}, j.last...)
}

// Enabled reports that the records of jobs are handled.
func (j *Jobs) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps a record of a flush or compaction.
func (j *Jobs) Handle(_ context.Context, r slog.Record) error {
	w := job{Work: livestate.Work{Kind: kindCompaction, State: "done", At: r.Time}}
	switch r.Message {
	case "flush begins", "compaction begins":
		w.State = "running"
	case "flushed memtables", "compacted sstables":
	case "flush aborted", "compaction aborted":
		w.State = "aborted"
	default:
		return nil
	}
	if strings.HasPrefix(r.Message, kindFlush) {
		w.Kind = kindFlush
	}
	r.Attrs(func(a slog.Attr) bool {
		if list, ok := a.Value.Any().(interface{ Numbers() []uint64 }); ok {
			if w.inputs = list.Numbers(); len(w.inputs) > 0 {
				w.after = slices.Max(w.inputs)
			}
		}
		number, _ := strconv.ParseInt(a.Value.Resolve().String(), 10, 64) // those below are integers
		switch a.Key {
		case "job":
			w.What = a.Value.String()
		case "run":
			w.after = uint64(number)
		case "memtables", "inputs":
			w.Inputs = int(number)
		case "files", "outputs":
			w.Outputs = int(number)
		case "bytes", "bytes_written":
			w.Written = number
		case "bytes_read":
			w.Read = number
		case "seconds":
			w.Ms = a.Value.Float64() * 1000
		}
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = slices.DeleteFunc(j.running, func(one job) bool { return one.Kind == w.Kind })
	switch w.State {
	case "running":
		j.running = append(j.running, w)
	case "done":
		j.last = slices.Insert(j.last, 0, w.Work)
		j.last = j.last[:min(len(j.last), keptJobs)]
	}
	return nil
}

// WithAttrs returns j: the attributes of a logger say nothing of a job.
func (j *Jobs) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup returns j.
func (j *Jobs) WithGroup(string) slog.Handler { return j }
