package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestExplorerLineEnds changes a text with the line ends of Windows, and one with both kinds.
func TestExplorerLineEnds(t *testing.T) {
	s, p := explorer(t, map[string]string{"Notes": `{"PartitionKey":"p","RowKey":"1","A":"one\r\ntwo","B":"one\r\ntwo\nthree","N":1}`})
	p.openTable(s, "Notes", "")
	open := func() {
		p.keys(".\r")
		p.wait(one(".property"))
	}
	save := func(a, b string) {
		t.Helper()
		p.press("Save")
		p.wait(`!document.querySelector("dialog")`)
		p.shown()
		if e := readEntity(t, s, "Notes", "p", "1"); e["A"] != a || e["B"] != b {
			t.Errorf("stored %q and %q, want %q and %q", e["A"], e["B"], a, b)
		}
	}
	open()
	p.enter(`.property[aria-label="Property N"] .cell input`, "2")
	save("one\r\ntwo", "one\r\ntwo\nthree")
	open()
	p.enter(`.property[aria-label="Property A"] textarea`, "one\nsecond\nthird")
	save("one\r\nsecond\r\nthird", "one\r\ntwo\nthree")
	open()
	p.choose(`.property[aria-label="Property N"] select`, "Edm.Boolean")
	save("one\r\nsecond\r\nthird", "one\r\ntwo\nthree")
	if got := readEntity(t, s, "Notes", "p", "1")["N"]; got != true {
		t.Errorf("N is %v", got)
	}
}

// TestExplorerTakenKey opens the editor with Enter. Chromium sometimes gives the text of that
// key to the field that has the focus by then, so the page takes the text too.
func TestExplorerTakenKey(t *testing.T) {
	s, p := explorer(t, map[string]string{"Notes": `{"PartitionKey":"p","RowKey":"1","A":"one"}`})
	p.openTable(s, "Notes", "")
	p.keys(".")
	types := func(event, key string) bool {
		return eval[bool](p, fmt.Sprintf(`document.activeElement.dispatchEvent(
			new KeyboardEvent(%s, {key: %[2]s, code: %[2]s, bubbles: true, cancelable: true}))`, quote(event), quote(key)))
	}
	types("keydown", "Enter")
	p.wait(`document.activeElement.value === "one"`)
	if types("keypress", "Enter") {
		t.Error("the key that opened the editor types into it")
	}
	if !types("keydown", "x") || !types("keypress", "x") {
		t.Error("another key types nothing")
	}
}

// hold makes the requests of a path wait for release.
func (p *tab) hold(path string) {
	p.t.Helper()
	p.js(`(() => {
		const real = window.fetch;
		window.held = 0;
		const gate = new Promise((resolve) => { window.release = resolve; });
		window.fetch = async (to, options) => {
			if (String(to).includes(` + quote(path) + `)) { window.held++; await gate; }
			return real(to, options);
		};
	})()`)
}

// TestExplorerSlowAnswers does the next step before the answer to the last one: it goes on
// twice, ends the deletion of many entities, and leaves the editor.
func TestExplorerSlowAnswers(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(1000)})
	p.openTable(s, "Orders", "")
	p.hold("/api/entities")
	p.click("#next")
	p.wait(`window.held === 1`)
	p.keys("]")
	p.js(`release()`)
	p.shown()
	if got := p.text("#status"); eval[int](p, `window.held`) != 1 || p.rows()[0] != "100" {
		t.Errorf("after two steps before an answer: %s, rows from %s", got, p.rows()[0])
	}

	p.openTable(s, "Orders", "")
	p.choose("#top", "1000")
	p.wait(`document.querySelectorAll("#grid tbody tr").length === 1000`)
	p.keys(".")
	p.keys("a", chromedp.ModifierCtrl)
	p.wait(`document.querySelector("#selected").innerText === "1,000 selected"`)
	p.hold("/api/batch")
	p.keys(kb.Delete)
	p.press("Delete")
	p.wait(`window.held === 1`)
	p.press("Cancel")
	p.wait(`!document.querySelector("dialog")`)
	p.js(`release()`)
	p.wait(`document.querySelector("#toast").innerText === "Deleted 100 entities of 1,000" && document.querySelectorAll("#grid tbody tr").length === 900`)

	p.openTable(s, "Orders", "")
	p.hold("/api/entity")
	p.js(`release()`)
	p.keys(".\r")
	p.wait(one(".property"))
	p.hold("/api/entity")
	p.enter(`.property[aria-label="Property Customer"] textarea`, "changed")
	p.press("Save")
	p.wait(`window.held === 1`)
	p.press("Cancel")
	p.wait(`!document.querySelector("dialog")`)
	p.js(`release()`)
	p.wait(`document.querySelector("#grid tbody tr").innerText.includes("changed")`)
}

// ordersFile writes 50 orders to a file for imports.
func ordersFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	if err := os.WriteFile(file, []byte(orders(50)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExplorerImportEnded leaves the page of an import that has ended, before the answer to
// the last part of the file: the page does not ask.
func TestExplorerImportEnded(t *testing.T) {
	s, p := explorer(t, map[string]string{"Copy": orders(1)})
	file := ordersFile(t)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	p.js(`(() => {
		const real = window.fetch;
		window.fetch = async (to, options) => {
			const answer = await real(to, options);
			if (String(to).includes("import/data")) await new Promise(() => {});
			return answer;
		};
	})()`)
	do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
	p.press("Import")
	p.wait(`document.querySelector("#import-job").innerText.includes("done")`)
	p.open("/ui/")
}

// setMark sets the property Mark of all entities in the grid.
func (p *tab) setMark(value string) {
	p.t.Helper()
	p.js(`document.querySelector("#grid thead input").click()`)
	p.press("Set a property…")
	p.enter("dialog input", "Mark")
	p.keys(kb.Tab)
	p.enter(`dialog input[dir="auto"]`, value)
	p.press("Set")
}

// changed waits until the page says that so many entities are changed, and that none failed.
func (p *tab) changed(entities string) {
	p.t.Helper()
	p.wait(`!document.querySelector("dialog form")`)
	p.wait(`document.querySelector("dialog") || document.querySelector("#toast").innerText.includes("Changed ` + entities + `")`)
	if text := eval[string](p, `document.querySelector("dialog")?.innerText ?? ""`); text != "" {
		p.t.Errorf("the page says %q", text)
	}
}

// TestExplorerSetAgain sets a property of 150 entities while the connection fails after the first
// 100, and then the same value again, which changes the rest, or another one, which changes all.
// Nothing may fail.
func TestExplorerSetAgain(t *testing.T) {
	for _, again := range []string{"x", "y"} {
		t.Run(again, func(t *testing.T) {
			s, p := explorer(t, map[string]string{"Orders": orders(150)})
			p.openTable(s, "Orders", "")
			p.choose("#top", "250")
			p.wait(`document.querySelectorAll("#grid tbody tr").length === 150`)
			p.shown()
			p.js(`(() => {
				const real = window.fetch;
				let batches = 0;
				window.fetch = async (to, options) => {
					if (String(to).includes("api/batch") && ++batches === 2) throw new TypeError("no connection");
					return real(to, options);
				};
			})()`)
			p.setMark("x")
			p.wait(`document.querySelector("dialog .notice.error")`)
			p.enter(`dialog input[dir="auto"]`, again)
			p.press("Set")
			p.changed("150 entities")
		})
	}
}

// TestExplorerGroups adds a condition to a group that others follow, and types at once.
func TestExplorerGroups(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(20) + `{"PartitionKey":"p","RowKey":"json","J":"{\"id\":9007199254740993,\"x\":[1.10,-0]}"}`})
	p.openTable(s, "Orders", "(Items eq 1 or Items eq 2) and Total gt 1.5")
	p.wait(one(`[data-path="0.1"] .property-name`))
	p.clickOn(`[...document.querySelectorAll('[data-path="0"] > .row button')].find((b) => b.innerText === "+ Condition")`)
	p.wait(`document.activeElement.closest("[data-path]")?.dataset.path === "0.2"`)
	p.keys("Paid")
	p.choose(`[data-path="0.2"] select:nth-of-type(2)`, "Edm.Boolean")
	p.wait(`document.querySelector("#filter").value.includes("or Paid eq true")`)

	p.openTable(s, "Orders", "RowKey eq 'json'")
	p.clickOn(`document.querySelector("#grid tbody td:nth-child(5)")`)
	p.keys("v")
	p.wait(one(".tree"))
	p.keys(kb.End + kb.ArrowRight)
	if got := p.text(".tree"); eval[bool](p, `!`+one(".tree")+`.innerText.includes("9007199254740993")`) {
		t.Errorf("the tree shows %s", got)
	}
}

// TestExplorerEndedEditor ends the session of an open editor: what was typed stays, and is
// saved after a login elsewhere in the browser.
func TestExplorerEndedEditor(t *testing.T) {
	s, p := explorer(t, map[string]string{"Notes": `{"PartitionKey":"p","RowKey":"1","A":"one"}`})
	p.openTable(s, "Notes", "")
	p.keys(".\r")
	p.enter(`.property[aria-label="Property A"] textarea`, "typed")
	p.js(`fetch("/ui/api/logout", {method: "POST", body: "{}", headers: {
		"Content-Type": "application/json", "X-Csrf-Token": document.querySelector('meta[name="csrf"]').content}})`)
	for range 2 {
		p.press("Save")
		p.wait(`document.querySelector("dialog .notice.error")?.innerText.includes("SessionEnded")`)
		p.js(`document.querySelector("dialog .notice.error").remove()`)
	}
	p.js(`fetch("/ui/api/login", {method: "POST", headers: {"Content-Type": "application/json"},
		body: JSON.stringify({account: ` + quote(s.account) + `, key: ` + quote(s.key) + `})})`)
	p.press("Save")
	p.wait(`!document.querySelector("dialog") && document.querySelector("#grid").innerText.includes("typed")`)
	if e := readEntity(t, s, "Notes", "p", "1"); e["A"] != "typed" {
		t.Errorf("stored %q", e["A"])
	}
}

// TestExplorerEnd ends the session of a page that listens to the engine: it shows the login.
func TestExplorerEnd(t *testing.T) {
	_, p := explorer(t, nil)
	p.open("/ui/engine")
	p.wait(`document.querySelector('[data-part="Memtables"] .size')?.textContent`)
	p.js(`fetch("/ui/api/logout", {method: "POST", body: "{}", headers: {
		"Content-Type": "application/json", "X-Csrf-Token": document.querySelector('meta[name="csrf"]').content}})`)
	p.wait(`location.pathname === "/ui/login" && location.search.includes("engine")`)
}
