package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/chromedp/cdproto/page"
)

// metrics returns the figures of engine.Stats that the server reports, by their names
// without "tablerock_engine_".
func metrics(t *testing.T, s *server) map[string]float64 {
	t.Helper()
	r := must(http.Get(s.admin + "/metrics"))(t)
	defer r.Body.Close()
	figures := map[string]float64{}
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			figures[strings.TrimPrefix(name, "tablerock_engine_")] = n
		}
	}
	_, _ = io.Copy(io.Discard, r.Body) // for the next request
	return figures
}

// part is the label of a part of the engine.
type part struct{ Name, Size, Rate string }

// parts returns the labels that the page of the engine shows, by their names.
func (p *tab) parts() map[string]part {
	p.t.Helper()
	list := eval[[]part](p, `[...document.querySelectorAll("[data-part]")].map((e) => ({Name: e.querySelector(".name").textContent,
		Size: e.querySelector(".size").textContent, Rate: e.querySelector(".rate").textContent}))`)
	byName := map[string]part{}
	for _, one := range list {
		byName[one.Name] = one
	}
	return byName
}

// amount returns the number in a label, and the error of its rounding.
func amount(t *testing.T, text string) (value, rounding float64) {
	t.Helper()
	text, _, _ = strings.Cut(text, ", ")
	number, unit, _ := strings.Cut(text, " ")
	number = strings.ReplaceAll(number, ",", "")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("the label %q has no number", text)
	}
	rounding = 0.5
	if _, digits, ok := strings.Cut(number, "."); ok {
		rounding = 0.5 / math.Pow10(len(digits))
	}
	scale := map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[strings.TrimSuffix(unit, "/s")]
	if scale == 0 {
		scale = 1
	}
	return value * scale, rounding*scale + 1e-9
}

// counters has the labels of counters, and the metrics that they show.
var counters = map[string]string{
	"Log written": "log_written_bytes_total", "Log syncs (fsync)": "log_syncs_total",
	"Flushes written": "flush_written_bytes_total", "Compactions written": "compaction_written_bytes_total", "Stalls": "stalls_total",
}

// TestExplorerTrouble shows a full disk, and a database that accepts no writes.
func TestExplorerTrouble(t *testing.T) {
	_, p := explorer(t, nil)
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const parse = JSON.parse;
		JSON.parse = (...given) => {
			const value = parse(...given);
			for (const engine of value?.engines ?? []) Object.assign(engine, window.trouble, { figures: { ...engine.figures, DiskFull: true } });
			return value;
		};`})
	p.showEngine()
	p.wait(`document.querySelector(".engine .notice.error")?.innerText === "The disk is full: only deletions are accepted."`)
	p.js(`window.trouble = {failure: "database is read-only: sync 000001.wal"}`)
	p.wait(`document.querySelector(".engine .notice.error")?.innerText.endsWith("until it is opened again: database is read-only: sync 000001.wal")`)
}

// The labels of the engine's parts show the figures of Stats, during flushes and compactions
// and after them.
func TestExplorerEngine(t *testing.T) {
	s, p := explorer(t, map[string]string{"Seed": orders(10)}, "--segment-size", "1MiB")
	p.open("/ui/engine")
	p.wait(`document.querySelector('[data-part="Memtables"] .size')?.textContent`)
	stop := writeOn(t, s)
	limit := time.Now().Add(waitTimeout)
	rounds := 0
	for {
		before := metrics(t, s)
		p.nextState()
		labels := p.parts()
		after := metrics(t, s)
		compareCounters(t, labels, before, after)
		rounds++
		if rounds >= 3 && after["flushes_total"] > before["flushes_total"] && after["compactions_total"] > 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("no flush and compaction while the page was watched: %v flushes, %v compactions", after["flushes_total"], after["compactions_total"])
		}
	}
	t.Logf("%d states compared", rounds)
	for n := 0.0; n == 0; { // a slow sync can take longer than the time of a rate
		p.nextState()
		if n, _ = amount(t, p.parts()["Log (WAL)"].Rate); n == 0 && time.Now().After(limit) {
			t.Fatal("the log has no rate while it is written")
		}
	}
	stop()
	checkAtRest(t, s, p)
	text := p.text(".jobs")
	if !strings.Contains(text, "flush") || !strings.Contains(text, "compaction") {
		t.Errorf("the last work is %q", text)
	}
	checkRequests(t, s, p)
}

// nextState waits for two states of the server that are newer than the present one: the
// first can have been on its way.
func (p *tab) nextState() {
	p.t.Helper()
	p.js(`new Promise((resolve) => {
		let n = 0;
		const watch = new MutationObserver(() => { if (++n === 2) { watch.disconnect(); resolve(); } });
		watch.observe(document.querySelector("#state"), {childList: true, characterData: true, subtree: true});
	})`)
}

func compareCounters(t *testing.T, labels map[string]part, before, after map[string]float64) {
	t.Helper()
	for name, metric := range counters {
		if _, ok := before[metric]; !ok {
			t.Fatalf("the server has no metric %s", metric)
		}
		n, rounding := amount(t, labels[name].Size)
		if n+rounding < before[metric] || n-rounding > after[metric] {
			t.Errorf("%s is labelled %s, but Stats had %.0f before and %.0f after", name, labels[name].Size, before[metric], after[metric])
		}
		if labels[name].Rate == "" {
			t.Errorf("%s has no rate", name)
		}
	}
}

// checkAtRest compares the sizes once nothing changes any more.
func checkAtRest(t *testing.T, s *server, p *tab) {
	t.Helper()
	limit := time.Now().Add(waitTimeout)
	for {
		before := metrics(t, s)
		p.nextState()
		labels := p.parts()
		problem := compareSizes(t, labels, before)
		if after := metrics(t, s); problem == "" && after["sstable_bytes"] == before["sstable_bytes"] {
			compareCounters(t, labels, before, after)
			return
		}
		if time.Now().After(limit) {
			t.Fatal(problem)
		}
	}
}

// compareSizes returns how the sizes of labels differ from figures, or "".
func compareSizes(t *testing.T, labels map[string]part, figures map[string]float64) string {
	t.Helper()
	sstables, rounding := 0.0, 0.0
	for name, one := range labels {
		if name == "Bottom" || strings.HasPrefix(name, "Tier ") {
			n, r := amount(t, one.Size)
			sstables, rounding = sstables+n, rounding+r
		}
	}
	if want := figures["sstable_bytes"]; math.Abs(sstables-want) > rounding+want/1000 {
		return fmt.Sprintf("the tiers have %.0f bytes, but Stats %.0f", sstables, want)
	}
	n, r := amount(t, labels["Log (WAL)"].Size)
	if want := figures["wal_bytes"]; math.Abs(n-want) > r+want/1000 {
		return fmt.Sprintf("the log has %s, but Stats %.0f", labels["Log (WAL)"].Size, want)
	}
	return ""
}

// writeOn inserts entities until the returned function is called, which waits for the last.
func writeOn(t *testing.T, s *server) (stop func()) {
	t.Helper()
	c := s.service(t).NewClient("Seed")
	end := make(chan struct{})
	var done sync.WaitGroup
	for worker := range 2 {
		done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				var batch []aztables.TransactionAction
				for i := range 50 {
					text := fmt.Sprintf(`{"PartitionKey":"w%d","RowKey":"%06d-%02d","Odd":%t,"Text":%q}`, worker, n%40, i, i%2 == 1, strings.Repeat(fmt.Sprint(n, i), 300))
					batch = append(batch, aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertReplace, Entity: []byte(text)})
				}
				if _, err := c.SubmitTransaction(t.Context(), batch, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(end); done.Wait() })
}

// checkRequests looks at the last requests and the slow queries.
func checkRequests(t *testing.T, s *server, p *tab) {
	t.Helper()
	c := s.service(t).NewClient("Seed")
	text := "Odd eq true and Odd eq false" // no bounds of a group exclude it
	for pager := c.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &text}); pager.More(); {
		must(pager.NextPage(t.Context()))(t)
	}
	if _, err := c.GetEntity(t.Context(), "no", "such", nil); err == nil {
		t.Fatal("found an entity that is not there")
	}
	p.wait(`document.querySelector("#last tbody tr")?.innerText.includes("404")`)
	p.wait(`document.querySelector("#slow").innerText.includes("Odd eq ?")`)
	if text := p.text("#slow"); !strings.Contains(text, "whole table") {
		t.Errorf("the slow queries are %q", text)
	}
	p.clickOn(`document.querySelector("#slow a")`)
	p.wait(`location.pathname === "/ui/table" && document.querySelector("#filter").value === "Odd eq true and Odd eq false" &&
		document.querySelector("#explain .explain")`)
}
