package e2e

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// delaySeed makes the pages and the steps of the tests slow at random, "" leaves them as
// fast as they are. A test that passes on a fast machine by luck fails with some seed.
var delaySeed = os.Getenv("TABLEROCK_BROWSER_DELAYS")

// slowDown gives a tab the delays of the seed and its test: a slower processor, and waiting
// before requests, answers and steps.
func (p *tab) slowDown() {
	if delaySeed == "" {
		return
	}
	p.t.Logf("repeat with TABLEROCK_BROWSER_DELAYS=%s go test -run '^%s$' .", delaySeed, p.t.Name())
	hash := fnv.New64a()
	fmt.Fprint(hash, delaySeed, p.t.Name())
	rng := rand.New(rand.NewPCG(hash.Sum64(), 0))
	call(p, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 1 + rng.Float64()*rng.Float64()*15})
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(`{
		const real = window.fetch;
		const longest = %d;
		let state = %d;
		const random = () => { state = Math.imul(state, 1664525) + 1013904223 | 0; return (state >>> 8) / 2 ** 24; };
		const pause = () => new Promise((resolve) => setTimeout(resolve, random() * random() * longest));
		window.fetch = async (...args) => { await pause(); const answer = await real(...args); await pause(); return answer; };
	}`, rng.IntN(1500), rng.Int32())})
	p.delays = rng
}

// pause waits before a step.
func (p *tab) pause() {
	if p.delays != nil && p.delays.IntN(3) == 0 {
		<-time.After(time.Duration(p.delays.Float64() * p.delays.Float64() * float64(300*time.Millisecond)))
	}
}
