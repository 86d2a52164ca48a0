package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The pages show and change data in PostgreSQL. The page of the engine has requests and the
// pool of connections only.
func TestExplorerBackend(t *testing.T) {
	if !onDatabases() {
		t.Skip("the data is in a directory: go test ./store/postgres/pgtest -run TestClients -clients runs this test on PostgreSQL")
	}
	startChrome(t)
	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	service := s.service(t)
	must(service.CreateTable(t.Context(), "Orders", nil))(t)
	c := service.NewClient("Orders")
	for line := range bytes.Lines([]byte(orders(30))) {
		must(c.AddEntity(t.Context(), line, nil))(t)
	}
	p := newTab(t, s.admin)
	p.login(s)
	if text := p.text("#accounts"); !strings.Contains(text, "postgres://") || !strings.Contains(text, "Orders") {
		t.Errorf("the account says %q", text)
	}
	p.openTable(s, "Orders", "PartitionKey eq 'p01' and (Total gt 12 or Paid eq true)")
	if got := len(p.rows()); got != 9 {
		t.Errorf("%d rows, want 9", got)
	}
	p.wait(`document.querySelector("#explain .explain")`)
	if text := p.text("#explain"); !strings.Contains(text, "whole partitions") {
		t.Errorf("explain says %q", text)
	}
	p.press("012")
	p.enter(`.property[aria-label="Property Customer"] textarea`, "somebody else")
	p.press("Save")
	p.wait(`!document.querySelector("dialog") && document.querySelector("#grid").innerText.includes("somebody else")`)
	if got := readEntity(t, s, "Orders", "p01", "012")["Customer"]; got != "somebody else" {
		t.Errorf("the server has %v", got)
	}
	p.keys("n")
	p.enter(`input[name="PartitionKey"]`, "new")
	p.enter(`input[name="RowKey"]`, "1")
	p.press("Save")
	p.wait(`!document.querySelector("dialog")`)
	p.press("Clear")
	p.shown()
	p.press("Count")
	p.wait(`document.querySelector("#counted").innerText === "31 entities in all"`)

	p.open("/ui/engine")
	p.wait(`document.querySelector('[data-part="Round trips"] .rate')?.textContent && document.querySelector("#last tbody tr")`)
	labels := p.parts()
	if n, _ := amount(t, labels["Connections"].Size); n < 1 {
		t.Errorf("the pool is labelled %v", labels["Connections"])
	}
	if n, _ := amount(t, labels["Requests"].Size); n < 4 {
		t.Errorf("the requests are labelled %v", labels["Requests"])
	}
	for _, name := range []string{"Log (WAL)", "Memtables", "Log written", "Flushes written", "Cache hits"} {
		if _, ok := labels[name]; ok {
			t.Errorf("the page has %s of an engine", name)
		}
	}
	if text := p.text("#last"); !strings.Contains(text, "Orders") {
		t.Errorf("the last requests are %q", text)
	}
	trips, _ := amount(t, labels["Round trips"].Size)
	must(c.GetEntity(t.Context(), "p01", "012", nil))(t)
	p.wait(`Number(document.querySelector('[data-part="Round trips"] .size').textContent.replaceAll(",", "")) > ` + strconv.Itoa(int(trips)))
}

// The CPU time of a server that one page looks at and of one that nobody looks at is logged:
// the aims are 3 % and 1 % of a core. A page that does not listen gets no states, and the test
// fails.
func TestExplorerCost(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system does not tell the CPU time of another process")
	}
	s, p := explorer(t, map[string]string{"Orders": orders(200)})
	alone := start(t, filepath.Join(t.TempDir(), "data"), nil)
	p.showEngine()
	p.nextState()
	begin, watched, unwatched := time.Now(), cpuTime(t, s), cpuTime(t, alone)
	for range 4 {
		p.nextState()
	}
	took := time.Since(begin)
	share := func(n time.Duration) float64 { return 100 * float64(n) / float64(took) }
	watched, unwatched = cpuTime(t, s)-watched, cpuTime(t, alone)-unwatched
	t.Logf("in %.1f s: %.1f %% of a core with one page, %.1f %% without", took.Seconds(), share(watched), share(unwatched))
}

// cpuTime returns the CPU time that a server has taken, in steps of 10 ms.
func cpuTime(t *testing.T, s *server) time.Duration {
	t.Helper()
	text := string(must(os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat"))(t))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+2:])
	ticks := must(strconv.Atoi(fields[11]))(t) + must(strconv.Atoi(fields[12]))(t)
	return time.Duration(ticks) * 10 * time.Millisecond
}
