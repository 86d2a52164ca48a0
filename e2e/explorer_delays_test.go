package e2e

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// delaySeed makes the pages and the steps of the tests slow at random, "" leaves them as
// fast as they are. A test that passes on a fast machine by luck fails with some seed.
var delaySeed = os.Getenv("TABLEROCK_BROWSER_DELAYS")

// delays are those of a tab.
type delays struct {
	mu  sync.Mutex
	rng *rand.Rand // nil: no delays
}

// slowDown gives a tab the delays of the seed and its test: a slower processor, and waiting
// before and after requests and steps.
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
		const pause = () => new Promise((resolve) => setTimeout(resolve, Math.random() * Math.random() * longest));
		window.fetch = async (...args) => { await pause(); const answer = await real(...args); await pause(); return answer; };
	}`, rng.IntN(1500))})
	p.delays.rng = rng
}

// pause waits before a step.
func (d *delays) pause() {
	if d.rng == nil {
		return
	}
	d.mu.Lock()
	wait := time.Duration(0)
	if d.rng.IntN(3) == 0 {
		wait = time.Duration(d.rng.Float64() * d.rng.Float64() * float64(300*time.Millisecond))
	}
	d.mu.Unlock()
	<-time.After(wait)
}
