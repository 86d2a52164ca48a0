package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// waitTimeout limits each wait for the page.
const waitTimeout = time.Minute

// chrome is the browser of all tests of the explorer, started by the first of them. It ends
// with this process.
var chrome struct {
	once sync.Once
	ctx  context.Context
	err  error
}

// pictures is the folder for pictures of all pages, "" if none are made.
var pictures = os.Getenv("TABLEROCK_SCREENSHOTS")

// browserProgram returns the path of Chromium.
func browserProgram() string {
	if given := os.Getenv("TABLEROCK_CHROMIUM"); given != "" {
		return given
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// missing skips a test for want of a program, or fails it if TABLEROCK_REQUIRE is set, as
// .ci/run does.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TABLEROCK_REQUIRE") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// startChrome starts the browser. The stage clients of .ci/run installs it.
func startChrome(t *testing.T) context.Context {
	t.Helper()
	path := browserProgram()
	if path == "" {
		missing(t, "there is no Chromium")
	}
	chrome.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-gpu", true),
			chromedp.WindowSize(1280, 860))
		alloc, _ := chromedp.NewExecAllocator(context.Background(), options...)
		chrome.ctx, _ = chromedp.NewContext(alloc)
		chrome.err = chromedp.Do(chrome.ctx)
	})
	if chrome.err != nil {
		t.Fatal(chrome.err)
	}
	return chrome.ctx
}

// tab is a page of the browser with cookies of its own. Its errors end the test.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // of the explorer, such as http://127.0.0.1:10012
	// clicks and inputs count what a user of the page did.
	clicks, inputs int
	delays         *rand.Rand // nil: none

	mu       sync.Mutex
	problems []string          // exceptions, and what the content policy refused
	coming   map[string]string // the file names of downloads, by their ids
	arrived  chan string       // the file names of complete downloads
}

// newTab opens an empty page. The test fails if a page that it shows has an error.
func newTab(t *testing.T, base string) *tab {
	t.Helper()
	parent := startChrome(t)
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	p := &tab{t: t, ctx: ctx, base: base, coming: map[string]string{}, arrived: make(chan string, 16)}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.keepPicture()
		}
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.problems) > 0 {
			t.Errorf("the page reported:\n%s", strings.Join(p.problems, "\n"))
		}
	})
	call(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Amsterdam"})
	// Each of the pages that are open at a time has the focus.
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(p, cdplog.Enable, cdp.Empty{})
	p.slowDown()
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.problems = append(p.problems, text)
	case *cdplog.EventEntryAdded:
		if e.Entry.Source == "security" || strings.Contains(e.Entry.Text, "Content Security Policy") {
			p.problems = append(p.problems, e.Entry.Text)
		}
	case *page.EventJavascriptDialogOpening:
		p.problems = append(p.problems, "the page opened a box with "+e.Message)
	case *browser.EventDownloadWillBegin:
		p.coming[e.GUID] = e.SuggestedFilename
	case *browser.EventDownloadProgress:
		if e.State == browser.DownloadProgressStateCompleted {
			p.arrived <- p.coming[e.GUID]
		}
	}
}

// keepPicture writes a picture of the page after a failure, if TABLEROCK_SCREENSHOTS names
// a folder.
func (p *tab) keepPicture() {
	if pictures == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout)
	defer cancel()
	if png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
		_ = os.WriteFile(filepath.Join(pictures, "failed-"+strings.ReplaceAll(p.t.Name(), "/", "-")+".png"), png, 0o644) // the test has failed anyway
	}
}

// do runs an action on the page and returns its result.
func do[T any](p *tab, action chromedp.Action[T]) T {
	p.t.Helper()
	p.pause()
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// call runs a command of the protocol on the page.
func call[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	return do(p, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, cmd, params) })
}

// open loads a page, such as /ui/engine.
func (p *tab) open(path string) {
	p.t.Helper()
	do(p, chromedp.Navigate(p.base+path))
}

// eval runs a script in the page, waits for its promise and returns the result.
func eval[T any](p *tab, script string) T {
	p.t.Helper()
	return do(p, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// js runs a script in the page.
func (p *tab) js(script string) { p.t.Helper(); eval[chromedp.Void](p, script) }

// wait waits until a condition in the page is true. A page that is being replaced has none.
func (p *tab) wait(condition string) {
	p.t.Helper()
	script := fmt.Sprintf(`new Promise((resolve) => {
		const end = Date.now() + 3000;
		const look = () => {
			let ok = false;
			try { ok = Boolean(%s); } catch {}
			if (ok || Date.now() > end) resolve(ok); else setTimeout(look, 10);
		};
		look();
	})`, condition)
	p.pause()
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
		if ok {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatalf("never true: %s (%v), at %s", condition, err, p.looks())
		}
	}
}

// looks returns the address of the page and its text, for messages.
func (p *tab) looks() string {
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout/4)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" +
		(document.querySelector("dialog[open]") ?? document.body).innerText.replaceAll(/\s+/g, " ").slice(0, 600)`))
	if err != nil {
		return "a page that does not answer: " + err.Error()
	}
	return text
}

// one returns the expression of the element of a selector that is shown, of the last dialog
// if one is open.
func one(selector string) string {
	return fmt.Sprintf(`[...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll(%s)]`+
		`.find((e) => e.checkVisibility({visibilityProperty: true}))`, quote(selector))
}

// button returns the expression of a button or link by its text.
func button(text string) string {
	return fmt.Sprintf(`[...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("button, a, summary, label")]`+
		`.find((e) => (e.textContent.trim() === %[1]s || e.ariaLabel === %[1]s) && e.checkVisibility({visibilityProperty: true}) && !e.disabled)`, quote(text))
}

// clickOn clicks with the mouse on the element of an expression. A page that moves between
// the look and the click would be clicked elsewhere, and one that replaces the element gets
// no click at all: the window drops a click on another element, and clickOn looks again until
// the element was clicked.
func (p *tab) clickOn(element string) {
	p.t.Helper()
	for end := time.Now().Add(waitTimeout); ; {
		p.wait(element)
		at := eval[*struct{ X, Y float64 }](p, `(() => {
			const e = `+element+`;
			if (!e) return null;
			const guard = new AbortController();
			let clicked = false;
			const aim = (event) => {
				if (e.contains(event.target)) return event.type === "click" && (clicked = true) && guard.abort();
				event.preventDefault();
				event.stopImmediatePropagation();
			};
			for (const type of ["pointerdown", "mousedown", "click"]) window.addEventListener(type, aim, {capture: true, signal: guard.signal});
			window.endClick = () => { guard.abort(); return clicked; };
			e.scrollIntoView({block: "nearest", inline: "nearest"});
			const r = e.getBoundingClientRect();
			return {X: r.x + Math.min(r.width / 2, 60), Y: r.y + r.height / 2}; })()`)
		if at == nil {
			continue
		}
		do(p, chromedp.MouseClickXY(at.X, at.Y))
		if p.endClick() {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("no click reaches %s", element)
		}
	}
	p.clicks++
}

// endClick reports whether the click of clickOn reached its element or leaves the page: then the
// script fails, finds another page, or gets no answer.
func (p *tab) endClick() bool {
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout/4)
	defer cancel()
	clicked, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!window.endClick || window.endClick()`))
	return err != nil || clicked
}

func (p *tab) click(selector string) { p.t.Helper(); p.clickOn(one(selector)) }

func (p *tab) press(text string) { p.t.Helper(); p.clickOn(button(text)) }

// enter replaces the text of a field, as typing does.
func (p *tab) enter(selector, text string) {
	p.t.Helper()
	// The commands of an editor cause the events that keys do.
	p.wait(fmt.Sprintf(`(() => {
		const e = %s, text = %s; e.focus(); e.select(); document.execCommand(text ? "insertText" : "delete", false, text); return true; })()`,
		one(selector), quote(text)))
	p.inputs++
}

// choose selects an option by its value.
func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.wait(fmt.Sprintf(`(() => {
		const e = %s; e.value = %s;
		for (const name of ["input", "change"]) e.dispatchEvent(new Event(name, {bubbles: true}));
		return true; })()`, one(selector), quote(value)))
	p.inputs++
}

// keys presses keys one after the other.
func (p *tab) keys(keys string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	do(p, chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// text returns the text of an element.
func (p *tab) text(selector string) string {
	p.t.Helper()
	p.wait(one(selector))
	return eval[string](p, one(selector)+`.innerText`)
}

// login logs in with an account's key.
func (p *tab) login(s *server) {
	p.t.Helper()
	p.open("/ui/")
	p.enter("#account", s.account)
	p.enter("#secret", s.key)
	p.press("Log in")
	p.wait(`location.pathname === "/ui/" && document.querySelector("#accounts[aria-busy=false]")`)
	p.clicks, p.inputs = 0, 0
}

// openTable shows a table and waits for its rows.
func (p *tab) openTable(s *server, table, filter string) {
	p.t.Helper()
	p.open("/ui/table?" + url.Values{"account": {s.account}, "table": {table}, "filter": {filter}}.Encode())
	p.shown()
}

// shown waits for the page of rows that is being loaded, and for the page around it, which
// is hidden until all of its first content is there.
func (p *tab) shown() {
	p.t.Helper()
	p.wait(`document.querySelector("main:not(.starting) #grid[aria-busy=false]")`)
}

// rows returns the row keys that the grid shows.
func (p *tab) rows() []string {
	p.t.Helper()
	return eval[[]string](p, `[...document.querySelectorAll("#grid tbody tr")].map((r) => r.cells[2].innerText)`)
}

// grantClipboard lets the page copy, and read what it copied.
func (p *tab) grantClipboard() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout)
	defer cancel()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, Origin: p.base,
			BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// clipboard returns what was copied last.
func (p *tab) clipboard() string {
	p.t.Helper()
	return eval[string](p, `navigator.clipboard.readText()`)
}

// downloads makes the browser keep downloads in a folder, and returns a function that waits
// for a file of it.
func (p *tab) downloads() func(name string) []byte {
	p.t.Helper()
	dir := p.t.TempDir()
	events := true
	call(p, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID, DownloadPath: dir,
		EventsEnabled: &events,
	})
	return func(name string) []byte {
		p.t.Helper()
		timeout := time.After(waitTimeout)
		for {
			select {
			case got := <-p.arrived:
				if got == name {
					return must(os.ReadFile(filepath.Join(dir, name)))(p.t)
				}
			case <-timeout:
				p.t.Fatalf("%s was not downloaded", name)
			}
		}
	}
}

// explorer starts a server on a new directory with the tables of a seed, each a text of JSON
// with an entity a line, and returns a tab that is logged in.
func explorer(t *testing.T, seed map[string]string, args ...string) (*server, *tab) {
	t.Helper()
	needDirectory(t)
	t.Parallel()
	startChrome(t)
	data := filepath.Join(t.TempDir(), "data")
	for table, lines := range seed {
		load(t, data, table, "jsonl", strings.NewReader(lines))
	}
	s := start(t, data, nil, args...)
	p := newTab(t, s.admin)
	p.login(s)
	return s, p
}

// load imports a text into a table of a database that no server has.
func load(t *testing.T, data, table, format string, text io.Reader) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(data), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "import", table, "-", "--format", format, "--quiet", "--data", data)
	cmd.Stdin = text
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
}
