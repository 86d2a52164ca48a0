package ui

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/recent"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/livestate"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestMain serves the pages of a held engine in place of the tests if TABLEROCK_HELD names a
// directory: the browser tests of e2e start the binary so.
func TestMain(m *testing.M) {
	dir := os.Getenv("TABLEROCK_HELD")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := serveHeld(dir, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// held is an engine whose flush or compaction waits at the sync of an sstable until it is released.
type held struct {
	db *Database
	// afterStall lets the first job wait until a write has stalled, as on a slow machine.
	afterStall bool

	mu      sync.Mutex
	cond    *sync.Cond
	kind    string // that waits
	waiting string // the kind of the job that waits now
	begins  func() // is called when the held job begins to wait
}

const heldTable = "Orders"

func openHeld(dir string) (*held, error) {
	h := &held{begins: func() {}, db: &Database{Dir: filepath.ToSlash(dir), SegmentBytes: 1 << 20, Jobs: &Jobs{}}}
	h.cond = sync.NewCond(&h.mu)
	h.db.FS = errorfs.Wrap(vfs.OS(), func(op vfs.Op) *errorfs.Fault {
		if kind, _ := filename.Parse(path.Base(op.Name)); kind == filename.SSTable && op.Kind == "sync" {
			h.pass()
		}
		return nil
	})
	var err error
	h.db.DB, err = engine.Open(h.db.Dir, engine.Options{FS: h.db.FS, SegmentBytes: h.db.SegmentBytes, TierRuns: 4, Logger: slog.New(h.db.Jobs)})
	if err != nil {
		return nil, err
	}
	return h, h.db.DB.CreateTable(context.Background(), heldTable)
}

// pass returns once the job under way may sync.
func (h *held) pass() {
	running, _ := h.db.Jobs.list()
	if len(running) == 0 {
		return
	}
	for stats, _ := h.db.DB.Stats(); h.afterStall && stats.Stalls == 0; stats, _ = h.db.DB.Stats() { // an open database has stats
		runtime.Gosched()
	}
	kind := running[len(running)-1].Kind // a compaction does not write during a flush
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.kind == kind {
		h.waiting = kind
		h.begins()
		h.cond.Wait()
	}
	h.waiting = ""
}

// hold lets jobs of a kind wait from now on, and the others continue; "" releases all.
func (h *held) hold(kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kind = kind
	h.cond.Broadcast()
}

// waits reports whether the held job has begun.
func (h *held) waits() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kind != "" && h.waiting == h.kind
}

// write replaces entities of the table: batch n of 100 that are spread over all keys. The
// text hardly compresses, so that the files have the size of the segments.
func (h *held) write(ctx context.Context, s store.Store, n int) error {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	note := make([]byte, 120)
	ops := make([]store.Op, 100)
	for i := range ops {
		for i := range note {
			note[i] = byte(random.Uint32())
		}
		k := (n*len(ops) + i) * 7919 % 20_000
		ops[i] = store.InsertOrReplace(edm.Entity{
			Key: edm.Key{Partition: fmt.Sprintf("p%d", n%2), Row: fmt.Sprintf("%05d", k)},
			Properties: []edm.Property{
				{Name: "Customer", Value: edm.String(fmt.Sprintf("customer %d", k*31%977))},
				{Name: "Total", Value: edm.Double(float64(k) / 4)},
				{Name: "Note", Value: edm.String(base64.StdEncoding.EncodeToString(note))},
			},
		})
	}
	_, err := s.Apply(ctx, heldTable, ops...)
	return err
}

// read gets an entity that is in the table after n batches and one that is not, and runs two
// queries that read the whole table.
func (h *held) read(s store.Store, n int) error {
	row := fmt.Sprintf("%05d", (n-1)*100*7919%20_000)
	for _, partition := range []string{fmt.Sprintf("p%d", (n-1)%2), "none"} {
		key := edm.Key{Partition: partition, Row: row}
		if err := s.View(context.Background(), heldTable, key, func(edm.Row) error { return nil }); err != nil && !errors.Is(err, store.ErrEntityNotFound) {
			return err
		}
	}
	for _, text := range []string{fmt.Sprintf("Customer eq 'customer %d'", n%977), "Total lt 0.0"} {
		c := s.Query(context.Background(), heldTable, store.Query{Filter: filter.MustParse(text)})
		for c.Next() {
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			return err
		}
	}
	return nil
}

// freeze writes batches from n on until a memtable is frozen, and returns the number of the next.
func (h *held) freeze(s store.Store, n int) (int, error) {
	for {
		stats, err := h.db.DB.Stats()
		if err == nil && len(stats.Memtables) < 2 {
			err = h.write(context.Background(), s, n)
		} else {
			return n, err
		}
		if n++; err != nil {
			return n, err
		}
	}
}

// until writes batches from n on until the held job waits, and returns the number of the next.
// A write ends then too: it may be stalled until that job has ended.
func (h *held) until(s store.Store, n int) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h.mu.Lock()
	h.begins = cancel
	h.mu.Unlock()
	for end := n + 2000; n < end; n++ {
		if h.waits() {
			return n, nil
		}
		if err := h.write(ctx, s, n); err != nil && ctx.Err() == nil {
			return n, err
		}
	}
	return n, fmt.Errorf("no %s after 2,000 batches", h.kind)
}

// both writes batches from n on until a flush waits while a compaction is under way, and returns the
// number of the next. A flush may begin only after that compaction.
func (h *held) both(s store.Store, n int) (int, error) {
	for range 20 {
		for _, kind := range []string{kindCompaction, kindFlush} {
			h.hold(kind)
			var err error
			if n, err = h.until(s, n); err == nil && kind == kindCompaction {
				n, err = h.freeze(s, n)
			}
			if err != nil {
				return n, err
			}
		}
		if running, _ := h.db.Jobs.list(); len(running) == 2 {
			return n, nil
		}
	}
	return n, errors.New("no flush began during a compaction in 20 attempts")
}

// TestStateOfJobs compares the state with the job that is held: the memtables of a flush, the
// runs of a compaction, and both at once.
func TestStateOfJobs(t *testing.T) {
	for _, afterStall := range []bool{false, true} {
		t.Run(fmt.Sprintf("afterStall=%t", afterStall), func(t *testing.T) { testStateOfJobs(t, afterStall) })
	}
}

func testStateOfJobs(t *testing.T, afterStall bool) {
	h, err := openHeld(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		h.hold("")
		if err := h.db.DB.Close(); err != nil {
			t.Error(err)
		}
	}()
	h.afterStall = afterStall
	n := 0
	hold := func(kind string) livestate.Engine {
		t.Helper()
		h.hold(kind)
		if n, err = h.until(h.db.DB, n); err != nil {
			t.Fatal(err)
		}
		e, err := h.db.State("a")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := hold(kindFlush)
	if flushing := flushingOf(&e); flushing == 0 || flushing != e.Jobs[0].Inputs || e.Jobs[0].Kind != kindFlush || e.Jobs[0].State != "running" {
		t.Errorf("during a flush: %d memtables are flushed, jobs %+v", flushing, e.Jobs)
	}
	if last := e.Memtables[len(e.Memtables)-1]; last.State != "active" || movingOf(&e) != 0 {
		t.Errorf("during a flush: the last memtable is %s, %d bytes of runs move", last.State, movingOf(&e))
	}
	e = hold(kindCompaction)
	if e.Jobs[0].Kind != kindCompaction || e.Jobs[0].State != "running" || e.Jobs[0].Inputs == 0 || movingOf(&e) == 0 {
		t.Errorf("during a compaction: %d bytes of runs move, jobs %+v", movingOf(&e), e.Jobs)
	}
	if flushingOf(&e) != 0 {
		t.Error("during a compaction memtables are shown as flushed")
	}
	if n, err = h.both(h.db.DB, n); err != nil {
		t.Fatal(err)
	}
	if e, err = h.db.State("a"); err != nil {
		t.Fatal(err)
	}
	if e.Jobs[0].Written == 0 || e.Jobs[1].Written == 0 {
		t.Errorf("during both: jobs %+v have written nothing", e.Jobs[:2])
	}
	if e.Jobs[0].Kind != kindFlush || e.Jobs[1].Kind != kindCompaction || e.Jobs[1].State != "running" || flushingOf(&e) == 0 || movingOf(&e) == 0 {
		t.Errorf("during both: %d memtables, %d bytes of runs, jobs %+v", flushingOf(&e), movingOf(&e), e.Jobs[:2])
	}
	h.hold("")
	if err := h.db.DB.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err = h.db.State("a"); err != nil || flushingOf(&e) != 0 || movingOf(&e) != 0 || e.Jobs[0].State != "done" || e.Jobs[0].What != "full compaction" {
		t.Errorf("after all: %d memtables, %d bytes of runs, jobs %+v, error %v", flushingOf(&e), movingOf(&e), e.Jobs[0], err)
	}
}

func flushingOf(e *livestate.Engine) (n int) {
	for _, m := range e.Memtables {
		if m.State == "flushing" {
			n++
		}
	}
	return n
}

func movingOf(e *livestate.Engine) (n int64) {
	for _, t := range e.Tiers {
		for _, r := range t.Runs {
			n += r.Moving
		}
	}
	return n
}

// serveHeld serves the pages of a held engine. It prints the link that logs in, and then
// does what each line of in says, and answers with a line of JSON:
//
//	hold flush | compaction    writes until such a job waits; the number of batches
//	hold both                  writes until a flush waits during a compaction; the same
//	write N                    writes N batches; null
//	read                       gets an entity, and runs queries that read the table; null
//	release                    null
//	compact                    null, after a full compaction
//	stats                      engine.Stats
func serveHeld(dir string, in io.Reader, out io.Writer) error {
	h, err := openHeld(dir)
	if err != nil {
		return err
	}
	m := recent.New(time.Now)
	a, err := accountAlone("shop", h.db.DB, "/srv/tablerock/shop")
	if err != nil {
		return err
	}
	h.db.describe(&a)
	s := &observed{h.db.DB, a.Name, m}
	a.Store = s
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := Options("test", slog.New(slog.DiscardHandler), m)
	o.Cache = func() *livestate.Cache { return CacheOf(h.db.DB, exploreCache) }
	o.Sums = func() map[string]float64 { return Sums([]*engine.DB{h.db.DB}) }
	e := &Explore{Listen: "127.0.0.1:0", PrintLink: true, Stdout: out, Stderr: io.Discard}
	go func() { _ = e.serve(ctx, o, []explorer.Account{a}) }() // the pages report it
	n := 0
	for lines := bufio.NewScanner(in); lines.Scan(); {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		var answer any
		switch command {
		case "hold":
			if argument == "both" {
				n, err = h.both(s, n)
			} else {
				h.hold(argument)
				n, err = h.until(s, n)
			}
			answer = n
		case "write":
			count, _ := strconv.Atoi(argument) // the tests give a number
			for end := n + count; n < end && err == nil; n++ {
				err = h.write(ctx, s, n)
			}
		case "release":
			h.hold("")
		case "read":
			err = h.read(s, n)
		case "compact":
			err = h.db.DB.Compact(ctx)
		case "stats":
			answer, err = h.db.DB.Stats()
		default:
			err = fmt.Errorf("no command %q", command)
		}
		if err == nil {
			err = json.NewEncoder(out).Encode(answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
