package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// heldEngine is a process that serves the pages of an engine whose flush or compaction waits
// until it is released: the test binary of the package of tablerock explore.
type heldEngine struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Scanner
	errors *strings.Builder
	link   string // logs in
}

// startHeld starts the process on a new directory, and ends it with the test.
func startHeld(t *testing.T) *heldEngine {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ui.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", program, "./cmd/tablerock/internal/ui")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	h := &heldEngine{t: t, errors: &strings.Builder{}}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "TABLEROCK_HELD="+filepath.Join(t.TempDir(), "shop"))
	cmd.Stderr = h.errors
	in := must(cmd.StdinPipe())(t)
	h.in, h.out = in, bufio.NewScanner(must(cmd.StdoutPipe())(t))
	h.out.Buffer(nil, 1<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it can wait for a job
		_ = cmd.Wait()         // the error is that it was killed
	})
	h.link = h.line()
	return h
}

func (h *heldEngine) line() string {
	h.t.Helper()
	if !h.out.Scan() {
		h.t.Fatalf("the held engine ended: %v\n%s", h.out.Err(), h.errors)
	}
	return h.out.Text()
}

// do sends a command and returns the answer.
func (h *heldEngine) do(command string) string {
	h.t.Helper()
	if _, err := fmt.Fprintln(h.in, command); err != nil {
		h.t.Fatal(err)
	}
	return h.line()
}

// stats returns the figures of engine.Stats by their names.
func (h *heldEngine) stats() (figures map[string]any) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.do("stats")), &figures); err != nil {
		h.t.Fatal(err)
	}
	return figures
}

// open logs in and shows the page of the engine.
func (h *heldEngine) open() *tab {
	h.t.Helper()
	base, _, _ := strings.Cut(h.link, "/ui/")
	p := newTab(h.t, base)
	p.open(strings.TrimPrefix(h.link, base))
	p.wait(`location.pathname === "/ui/" && document.querySelector("#accounts[aria-busy=false]")`)
	p.showEngine()
	return p
}

func (p *tab) showEngine() {
	p.t.Helper()
	p.open("/ui/engine")
	p.wait(`document.querySelector('[data-part="Memtables"] .size')?.textContent`)
}

// moving returns the striped bars of each part that has some, and how many of its bars there are.
func (p *tab) moving() map[string]int {
	p.t.Helper()
	return eval[map[string]int](p, `Object.fromEntries([...document.querySelectorAll(".level")].map((e) =>
		[e.dataset.part, [...e.querySelectorAll(".bar.moving > span")].filter((one) => one.offsetWidth > 0).length]).filter(([, n]) => n > 0))`)
}

// The labels of the engine's parts show the figures of Stats while a flush, a compaction and
// both are under way, and stripes show what they move.
func TestExplorerJobs(t *testing.T) {
	needDirectory(t)
	t.Parallel()
	startChrome(t)
	h := startHeld(t)
	p := h.open()
	if pictures != "" {
		h.workFor(p, 40)
	}
	for _, step := range []struct {
		name     string
		commands []string
		moving   []string // the parts with stripes
		still    []string // those without
	}{
		{"flush", []string{"hold flush"}, []string{"Log (WAL)", "Memtables", "Flush"}, []string{"Tier 0", "Tier 1", "Bottom", "Compaction"}},
		{"compaction", []string{"hold compaction"}, []string{"Tier 0", "Compaction"}, []string{"Log (WAL)", "Memtables", "Flush"}},
		{"flush and compaction", []string{"hold both"}, []string{"Log (WAL)", "Memtables", "Flush", "Tier 0", "Compaction"}, nil},
		{"none", []string{"release", "compact"}, nil, []string{"Log (WAL)", "Memtables", "Flush", "Tier 0", "Tier 1", "Bottom", "Compaction"}},
	} {
		for _, command := range step.commands {
			h.do(command)
		}
		// The log is synced once more after the last write.
		var moving map[string]int
		var labels map[string]part
		figures := h.stats()
		for before := map[string]any(nil); !reflect.DeepEqual(before, figures); {
			before = figures
			p.nextState()
			moving, labels = p.moving(), p.parts()
			figures = h.stats()
		}
		if step.name != "none" {
			// A job that has written nothing has no stripes of its own.
			for _, part := range step.moving {
				if moving[part] == 0 && amountOf(t, labels[part].Size) > 0 {
					t.Errorf("%s: no stripes at %s: %v", step.name, part, labels[part])
				}
			}
			if text := p.text(".jobs"); strings.Count(text, "under way") != len(strings.Split(step.name, " and ")) {
				t.Errorf("%s: the last work is %q", step.name, text)
			}
		}
		for _, part := range step.still {
			if moving[part] > 0 {
				t.Errorf("%s: stripes at %s: %v", step.name, part, labels[part])
			}
		}
		h.compare(step.name, labels, figures)
		if step.name == "flush and compaction" {
			p.checkBusyEngine(axeScript(t))
		}
	}
}

// workFor writes at a changing rate and reads, for about n seconds, so that a picture has
// the meters of a busy engine.
func (h *heldEngine) workFor(p *tab, n int) {
	h.t.Helper()
	for i := range n {
		for range 8 + 6*i%11 {
			h.do("write 1")
			h.do("read")
		}
		p.nextState()
	}
}

// checkBusyEngine checks the looks of the page of an engine at work.
func (p *tab) checkBusyEngine(axe string) {
	p.t.Helper()
	for i, look := range looks {
		p.screen(look.width, look.colors)
		p.showEngine()
		p.nextState()
		if look.width < 500 {
			p.js(`document.querySelector(".engine").scrollIntoView()`)
		}
		p.checkLook("engine-" + look.name)
		if i < 2 {
			p.checkAxe("busy engine "+look.name, axe)
		}
	}
	p.screen(looks[0].width, looks[0].colors)
	p.showEngine()
}

func amountOf(t *testing.T, text string) float64 {
	t.Helper()
	n, _ := amount(t, text)
	return n
}

// compare compares the labels with the figures, which do not change.
func (h *heldEngine) compare(when string, labels map[string]part, figures map[string]any) {
	h.t.Helper()
	number := func(name string) float64 { h.t.Helper(); return figures[name].(float64) }
	log, rows, memory := 0.0, 0.0, 0.0
	for _, one := range figures["Memtables"].([]any) {
		m := one.(map[string]any)
		log, rows, memory = log+m["LogBytes"].(float64), rows+m["Rows"].(float64), memory+m["Bytes"].(float64)
	}
	want := map[string]float64{
		"Log (WAL)": log, "Memtables": memory, "Log written": number("LogBytesWritten"), "Log syncs (fsync)": number("LogSyncs"),
		"Flushes written": number("FlushBytesWritten"), "Compactions written": number("CompactionBytesWritten"), "Stalls": number("Stalls"),
	}
	for name, n := range want {
		got, rounding := amount(h.t, labels[name].Size)
		if math.Abs(got-n) > rounding {
			h.t.Errorf("%s: %s is labelled %s, but Stats has %.0f", when, name, labels[name].Size, n)
		}
	}
	if _, text, _ := strings.Cut(labels["Memtables"].Size, ", "); strings.ReplaceAll(text, ",", "") != fmt.Sprintf("%.0f rows", rows) {
		h.t.Errorf("%s: the memtables are labelled %s, but Stats has %.0f rows", when, labels["Memtables"].Size, rows)
	}
	if problem := compareSizes(h.t, labels, map[string]float64{"sstable_bytes": number("SSTableBytes"), "wal_bytes": log}); problem != "" {
		h.t.Errorf("%s: %s", when, problem)
	}
}
