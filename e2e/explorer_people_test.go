package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// screen sets the size of the window and the colors that the reader prefers.
func (p *tab) screen(width int64, colors string) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 860, DeviceScaleFactor: 1})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colors}}})
}

// axeScript returns the script of axe.
func axeScript(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join("js", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		missing(t, "axe is missing: npm ci --prefix js installs it")
	}
	return string(axe)
}

// looks are the sizes and colors in which each page is checked.
var looks = []struct {
	name   string
	width  int64
	colors string
}{{"wide-light", 1280, "light"}, {"narrow-dark", 390, "dark"}, {"wide-dark", 1280, "dark"}, {"narrow-light", 390, "light"}}

// pages are the pages and dialogs of the explorer, each with what shows it.
var pages = []struct {
	name string
	show func(p *tab, s *server)
}{
	{"tables", func(p *tab, _ *server) {
		p.open("/ui/")
		p.wait(`document.querySelector("#accounts[aria-busy=false]")`)
		// The pictures do not depend on the folder of the test.
		p.js(`document.querySelector("#accounts p.quiet bdi").textContent = "/srv/tablerock"`)
	}},
	{"query", func(p *tab, s *server) {
		p.openTable(s, "Orders", "PartitionKey eq 'p01' and (Total gt 12 or Paid eq true)")
		p.wait(`document.querySelector("#explain .explain") && document.querySelectorAll(".condition").length === 3`)
	}},
	{"grid", func(p *tab, s *server) { p.openTable(s, "Things", "") }},
	{"entity", func(p *tab, s *server) {
		p.open("/ui/table?account=" + s.account + "&table=Things&epk=types&erk=all")
		p.wait(one(".property"))
	}},
	{"transfer", func(p *tab, s *server) {
		p.open("/ui/transfer?account=" + s.account + "&table=Orders")
		p.wait(`document.querySelector("#jobs").innerText && document.querySelector("form.export")`)
	}},
	{"access", func(p *tab, s *server) {
		p.open("/ui/access?account=" + s.account + "&table=Orders")
		p.press("Add a policy")
		p.press("Make the signature")
		p.wait(`document.querySelector("#signature h3")`)
	}},
	{"idle", func(p *tab, s *server) {
		must(s.service(p.t).NewClient("Orders").GetEntity(p.t.Context(), "p00", "000", nil))(p.t)
		p.open("/ui/engine")
		p.wait(`document.querySelector('[data-part="Memtables"] .size')?.textContent && document.querySelector("#last tbody tr")`)
	}},
	{"keys", func(p *tab, _ *server) {
		p.open("/ui/keys")
		p.wait(`new Set([...document.querySelectorAll("th:last-child")].map((head) => head.offsetLeft)).size === 1`)
	}},
}

// Each page is accessible by the rules of axe, fits its window and moves nothing while it
// loads. TABLEROCK_SCREENSHOTS names a folder for pictures of all pages.
func TestExplorerPages(t *testing.T) {
	axe := axeScript(t)
	s, p := explorer(t, map[string]string{"Orders": orders(200), "Things": everyType + everyScript})
	// On a busy machine a page shows itself before its content is there, after a second.
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const never = new CSSStyleSheet();
		never.replaceSync(".starting { animation: none; }");
		document.adoptedStyleSheets.push(never);`})
	for i, look := range looks {
		if i >= 2 && pictures == "" {
			break // other combinations of the same rules
		}
		p.screen(look.width, look.colors)
		for _, one := range pages {
			one.show(p, s)
			p.checkLook(one.name + "-" + look.name)
			if i < 2 {
				p.checkAxe(one.name+"-"+look.name, axe)
				// The page in the other colors.
				p.screen(look.width, looks[2+i].colors)
				p.checkColors(one.name + "-" + looks[2+i].name)
				p.screen(look.width, look.colors)
			}
		}
	}
	p.press("Log out")
	p.wait(`location.pathname === "/ui/login"`)
	for i, look := range looks {
		p.screen(look.width, look.colors)
		p.open("/ui/login")
		p.wait(one("#account"))
		p.checkLook("login-" + look.name)
		if i < 2 {
			p.checkAxe("login-"+look.name, axe)
		} else {
			p.js(axe)
			p.checkColors("login-" + look.name)
		}
	}
}

// checkLook checks that the page fits the window and did not move, and keeps a picture.
func (p *tab) checkLook(name string) {
	p.t.Helper()
	if wide := eval[[]int](p, `[document.documentElement.scrollWidth, innerWidth]`); wide[0] > wide[1] {
		p.t.Errorf("%s: %d pixels wide in a window of %d", name, wide[0], wide[1])
	}
	shift := eval[float64](p, `new Promise((resolve) => {
		let sum = 0;
		const watch = new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value; });
		watch.observe({type: "layout-shift", buffered: true});
		requestAnimationFrame(() => setTimeout(() => { watch.disconnect(); resolve(sum); }, 30));
	})`)
	if shift > 0.02 {
		p.t.Errorf("%s: the layout shifted by %.3f while it loaded", name, shift)
	}
	if pictures != "" && !strings.HasPrefix(name, "idle") {
		if err := os.WriteFile(filepath.Join(pictures, name+".png"), smallPNG(p.t, do(p, chromedp.CaptureScreenshot())), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

// smallPNG returns a picture with its 256 most frequent colors, at about a third of the size.
func smallPNG(t *testing.T, text []byte) []byte {
	t.Helper()
	picture := must(png.Decode(bytes.NewReader(text)))(t)
	counts := map[color.Color]int{}
	size := picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			counts[picture.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	small := image.NewPaletted(size, colors[:min(256, len(colors))])
	draw.Draw(small, size, picture, size.Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checkAxe runs axe on the page. A script of the tests is not bound by the content policy.
func (p *tab) checkAxe(name, axe string) {
	p.t.Helper()
	p.js(axe)
	p.runAxe(name, `{resultTypes: ["violations"]}`)
}

// checkColors runs the rules of axe that depend on colors, in a page that checkAxe checked
// in others.
func (p *tab) checkColors(name string) {
	p.t.Helper()
	p.runAxe(name, `{resultTypes: ["violations"], runOnly: ["color-contrast", "link-in-text-block"]}`)
}

func (p *tab) runAxe(name, options string) {
	p.t.Helper()
	found := eval[[]string](p, `axe.run(document, `+options+`).then((r) => r.violations.map((v) =>
		v.id + ": " + v.help + ": " + v.nodes.slice(0, 4).map((n) => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")))`)
	for _, one := range found {
		p.t.Errorf("%s: %s", name, one)
	}
}

// A user without a mouse finds, changes and deletes an entity.
func TestExplorerKeyboard(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(30), "Other": orders(1)})
	focused := func() string {
		t.Helper()
		return eval[string](p, `document.activeElement.innerText || document.activeElement.ariaLabel || document.activeElement.id`)
	}
	p.keys("/")
	p.wait(`document.activeElement.id === "find"`)
	p.enter("#find", "Orders")
	p.wait(`document.querySelectorAll(".table-link").length === 1`)
	for range 5 {
		if p.keys(kb.Tab); focused() == "Orders" {
			break
		}
	}
	p.keys("\r")
	p.wait(`location.pathname === "/ui/table"`)
	p.shown()
	p.keys("/")
	p.wait(`document.activeElement.id === "filter"`)
	p.enter("#filter", "PartitionKey eq 'p02'")
	p.keys("\r", chromedp.ModifierCtrl)
	p.wait(`document.querySelectorAll("#grid tbody tr").length === 10`)
	p.js(`document.activeElement.blur()`)
	p.keys("." + kb.ArrowDown + kb.ArrowDown + kb.ArrowRight)
	if got := focused(); got != "022" {
		t.Errorf("the arrows led to %q", got)
	}
	outline := eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`)
	if outline != "solid" {
		t.Errorf("the focus is drawn %q", outline)
	}
	p.keys("\r")
	p.wait(one(".property"))
	p.keys("by keyboard")
	p.keys("\r", chromedp.ModifierCtrl)
	p.wait(`!document.querySelector("dialog") && document.querySelector("#grid").innerText.includes("by keyboard")`)
	p.keys(kb.End)
	p.wait(`document.activeElement.closest("#grid")`)
	p.keys(" " + kb.Delete)
	p.wait(`document.querySelector("dialog[open]")`)
	p.keys(kb.Escape)
	p.wait(`!document.querySelector("dialog")`)
	if !eval[bool](p, `document.activeElement.closest("#grid") !== null`) {
		t.Error("after the dialog the focus is at " + focused())
	}
	p.keys("?")
	p.wait(`location.pathname === "/ui/keys" && !document.querySelector(".starting") && document.readyState === "complete"`)
	p.keys("ge")
	p.wait(`location.pathname === "/ui/engine" && !document.querySelector(".starting") && document.readyState === "complete"`)
	p.keys("gt")
	p.wait(`location.pathname === "/ui/"`)
	p.openTable(s, "Orders", "")
	// Every control that Tab reaches has a name.
	var unnamed []string
	for range 60 {
		p.keys(kb.Tab)
		name := eval[string](p, `(() => { const e = document.activeElement;
			return e === document.body ? "body" : (e.ariaLabel || e.innerText || e.labels?.[0]?.innerText || e.getAttribute("aria-labelledby") || ""); })()`)
		if strings.TrimSpace(name) == "" {
			unnamed = append(unnamed, eval[string](p, `document.activeElement.outerHTML.slice(0, 120)`))
		}
	}
	if len(unnamed) > 0 {
		t.Errorf("controls without names: %v", unnamed)
	}
}

// everyScript has values in other scripts and directions, and with combining marks.
var everyScript = func() string {
	var b strings.Builder
	for i, text := range []string{"שלום עולם", "مرحبا 123", "e" + strings.Repeat("\u0301\u0323", 20), "\u202egnp.exe", "👩‍👩‍👧‍👦 family", "นํ้า"} {
		fmt.Fprintf(&b, `{"PartitionKey":"scripts","RowKey":"%d","Text":%s}`+"\n", i, quote(text))
	}
	return b.String()
}()

func TestExplorerScriptsAndTimes(t *testing.T) {
	s, p := explorer(t, map[string]string{"Things": everyType + everyScript})
	p.openTable(s, "Things", "PartitionKey eq 'scripts'")
	rows := eval[[]struct {
		Direction string
		Height    float64
	}](p, `[...document.querySelectorAll("#grid tbody tr")].map((r) => (
		{Direction: getComputedStyle(r.cells[4].querySelector("bdi")).direction, Height: r.offsetHeight}))`)
	if len(rows) != 6 || rows[0].Direction != "rtl" || rows[1].Direction != "rtl" || rows[2].Direction != "ltr" {
		t.Errorf("the directions are %v", rows)
	}
	for _, r := range rows {
		if r.Height > rows[4].Height+8 {
			t.Errorf("a row is %v pixels high, others %v", r.Height, rows[4].Height)
		}
	}
	p.openTable(s, "Things", "PartitionKey eq 'types'")
	at := `[...document.querySelectorAll("#grid tbody td")].find((c) => c.innerText.includes("2026-07-01"))`
	if got := eval[string](p, at+`.innerText`); got != "2026-07-01 12:00:00.1234567 UTC" {
		t.Errorf("in UTC: %q", got)
	}
	p.js(`document.activeElement.blur()`)
	p.keys("z")
	p.wait(at + `.innerText === "2026-07-01 14:00:00.1234567 +02:00"`)
}

// Names and values are never markup, scripts or styles, wherever they are shown.
func TestExplorerHostile(t *testing.T) {
	values := []string{
		`<img src=x onerror="window.hit=1">`, `"><script>window.hit=1</script>`, `javascript:window.hit=1`, `{{.CSRF}}`, "${window.hit=1}",
		`' or 1 eq 1 or '`, `=HYPERLINK("http://evil.example")`, `</style><style>body{display:none}</style>`,
		"a\u0000b", "line\u2028break\r\nX-Evil: 1", `{"__proto__":{"hit":1}}`,
	}
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, `{"PartitionKey":%s,"RowKey":%s,"__proto__":%s,"constructor":%s,"toString":%d}`+"\n",
			quote(hostileKey(v)), quote(hostileKey(fmt.Sprint(i, v))), quote(v), quote(v), i)
	}
	s, p := explorer(t, map[string]string{"constructor": b.String()})
	p.open("/ui/")
	p.press("constructor")
	p.shown()
	var shown []string
	for i := range values {
		filter := fmt.Sprintf("toString eq %d", i)
		p.openTable(s, "constructor", filter)
		cells := eval[[]string](p, `[...document.querySelectorAll("#grid tbody tr")].map((r) => r.cells[1].textContent)`)
		shown = append(shown, cells...)
		p.clickOn(`document.querySelector("#grid tbody td:nth-child(6)")`)
		p.keys("v")
		p.wait(`document.querySelector("dialog[open]")`)
		p.keys(kb.Escape + "\r")
		p.wait(one(".property"))
		if got := eval[string](p, one(`.property[aria-label="Property constructor"] textarea`)+`.value`); got != strings.ReplaceAll(values[i], "\r\n", "\n") {
			t.Errorf("the editor shows %q for %q", got, values[i])
		}
		p.press("Save")
		p.wait(`!document.querySelector("dialog")`)
		if got := readEntity(t, s, "constructor", hostileKey(values[i]), hostileKey(fmt.Sprint(i, values[i])))["constructor"]; got != values[i] {
			t.Errorf("the editor stored %q for %q", got, values[i])
		}
		p.shown()
	}
	if len(shown) != len(values) {
		t.Errorf("%d of %d entities are shown", len(shown), len(values))
	}
	for _, v := range values {
		if !slices.Contains(shown, hostileKey(v)) {
			t.Errorf("the key %q is missing in %q", hostileKey(v), shown)
		}
		p.open("/ui/table?" + url.Values{"account": {s.account}, "table": {v}, "filter": {v}}.Encode())
		p.shown()
	}
	if eval[bool](p, `"hit" in window || "hit" in {}`) {
		t.Error("a value was executed")
	}
	if html := eval[string](p, `fetch("/ui/table?table=" + encodeURIComponent("<script>")).then((r) => r.text())`); strings.Contains(html, "<script>") {
		t.Error("the page has the text of its URL")
	}
}

// hostileKey returns a value without the characters that a key cannot have.
func hostileKey(v string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\#?`, r) || r < 0x20 || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, v)
}
