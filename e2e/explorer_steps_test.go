package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestExplorerTypedFilter types a filter and does not run it: the next page is one of the query
// that ran.
func TestExplorerTypedFilter(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(250)})
	p.openTable(s, "Orders", "")
	p.enter("#filter", "RowKey lt '005'")
	p.click("#next")
	p.shown()
	if rows := p.rows(); len(rows) != 100 || rows[0] != "100" {
		t.Errorf("the second page is %q", rows)
	}
	p.press("Run")
	p.wait(`document.querySelectorAll("#grid tbody tr").length === 5`)
}

// TestExplorerCountOther counts the entities of a query while its filter is changed and another
// query runs.
func TestExplorerCountOther(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(250)})
	p.openTable(s, "Orders", "")
	p.js(`(() => {
		const real = window.fetch;
		window.counts = [];
		window.fetch = async (to, options) => {
			if (!String(to).includes("/api/count")) return real(to, options);
			counts.push(new URL(to, location).searchParams.get("filter") ?? "");
			if (counts.length > 1) await new Promise((resolve) => { window.release = resolve; });
			options.signal.throwIfAborted();
			return Response.json({ count: 1, next: counts.length > 1 ? "" : "WyJwMDEiLCIwMTAiXQ" });
		};
	})()`)
	p.js(`document.querySelector("#filter").value = "RowKey ge '0'"; document.querySelector("#count").click();
		document.querySelector("#filter").value = "RowKey eq '005'"`)
	p.wait(`window.release`)
	if got := eval[[]string](p, `counts`); got[0] != got[1] {
		t.Errorf("one count has the filters %q", got)
	}
	p.press("Run")
	p.wait(`document.querySelectorAll("#grid tbody tr").length === 1`)
	p.js(`release()`)
	p.wait(`document.querySelector("#count").innerText === "Count"`)
	if text := eval[string](p, `document.querySelector("#counted").innerText`); text != "" {
		t.Errorf("beside the new query the page says %q", text)
	}
}

// TestExplorerLeftQuestion leaves the question before a deletion while the deletion is under way:
// the page shows its result.
func TestExplorerLeftQuestion(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3), "Other": orders(1)})
	p.openTable(s, "Orders", "")
	p.keys(".\r")
	p.wait(one(".property"))
	p.hold("/api/entity")
	p.press("Delete…")
	p.press("Delete")
	p.wait(`window.held === 1`)
	p.keys(kb.Escape)
	p.wait(`document.querySelectorAll("dialog").length === 1`)
	p.js(`release()`)
	p.wait(`!document.querySelector("dialog") && document.querySelectorAll("#grid tbody tr").length === 2`)

	p.open("/ui/")
	p.hold("/api/tables/delete")
	p.press("Delete Other")
	p.enter("dialog input", "Other")
	p.press("Delete the table")
	p.wait(`window.held === 1`)
	p.keys(kb.Escape)
	p.wait(`!document.querySelector("dialog")`)
	p.js(`release()`)
	p.wait(`document.querySelectorAll(".table-link").length === 1`)
}

// TestExplorerCancelByKey cancels an import by keyboard: the button keeps the focus while the
// progress changes.
func TestExplorerCancelByKey(t *testing.T) {
	s, p := explorer(t, map[string]string{"Copy": orders(1)})
	file := ordersFile(t)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	countPolls := func() {
		t.Helper()
		p.js(`(() => {
			const real = window.fetch;
			window.polls = 0;
			window.fetch = async (to, options) => {
				if (String(to).includes("import/data")) await new Promise(() => {});
				if (/api\/jobs?(\?|$)/.test(to)) window.polls++;
				return real(to, options);
			};
		})()`)
	}
	countPolls()
	do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
	p.press("Import")
	stays := func(list string) {
		t.Helper()
		p.wait(fmt.Sprintf(`document.querySelector("%s button")?.innerText === "Cancel this job"`, list))
		p.js(fmt.Sprintf(`document.querySelector("%s button").focus(); window.polls = 0`, list))
		p.wait(`window.polls > 2`)
		if got := eval[bool](p, `document.activeElement.innerText === "Cancel this job"`); !got {
			t.Errorf("the button in %s lost the focus", list)
		}
	}
	stays("#import-job")
	p.keys("\r")
	p.wait(`document.querySelector("#import-job").innerText.includes("canceled")`)

	p.js(`fetch("/ui/api/import", {method: "POST", headers: {"Content-Type": "application/json",
		"X-Csrf-Token": document.querySelector('meta[name="csrf"]').content},
		body: JSON.stringify({account: ` + quote(s.account) + `, table: "Copy", name: "a.jsonl", size: 9})})`)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	countPolls()
	stays("#jobs")
}

// TestExplorerLinkElsewhere follows a link to a query on a page of another site: the browser sends
// no cookie with it, and the page is shown to who is logged in.
func TestExplorerLinkElsewhere(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a href="%s/ui/table?account=%s&amp;table=Orders">the orders</a>`, p.base, s.account)
	}))
	defer site.Close()
	do(p, chromedp.Navigate("http://localhost"+site.URL[len("http://127.0.0.1"):]))
	p.press("the orders")
	p.wait(`location.pathname === "/ui/table"`)
	p.shown()
}

// TestExplorerEndedImport ends the session of an import by a logout in another tab: the page stays, because
// to leave it would ask the reader whether to.
func TestExplorerEndedImport(t *testing.T) {
	s, p := explorer(t, map[string]string{"Copy": orders(1)})
	file := ordersFile(t)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	p.js(`(() => {
		const real = window.fetch;
		window.refused = 0;
		window.fetch = async (to, options) => {
			const answer = await real(to, options);
			if (answer.status === 401) window.refused++;
			return answer;
		};
	})()`)
	p.hold("import/data")
	do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
	p.press("Import")
	p.wait(`window.held === 1`)
	p.js(`fetch("/ui/api/logout", {method: "POST", body: "{}", headers: {
		"Content-Type": "application/json", "X-Csrf-Token": document.querySelector('meta[name="csrf"]').content}})`)
	p.wait(`window.refused > 0`) // the page asks for the state of the job
	p.js(`release()`)
	p.wait(`document.querySelector("#import-job .notice.error")?.innerText.includes("session has ended")`)
	p.wait(`!document.querySelector("#resume").hidden`)
}

// TestExplorerLostImport ends the session of an import by a login in another tab.
func TestExplorerLostImport(t *testing.T) {
	s, p := explorer(t, map[string]string{"Copy": orders(1)})
	file := ordersFile(t)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	p.hold("import/data")
	do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
	p.press("Import")
	p.wait(`window.held === 1`)
	p.js(`fetch("/ui/api/login", {method: "POST", headers: {"Content-Type": "application/json"},
		body: JSON.stringify({account: ` + quote(s.account) + `, key: ` + quote(s.key) + `})})`)
	p.js(`release()`)
	p.wait(`document.querySelector("#import-job .notice.error")`)
}

// TestExplorerDialogNames opens a question above the editor: each has its own name.
func TestExplorerDialogNames(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	p.openTable(s, "Orders", "")
	p.keys(".\r")
	p.wait(one(".property"))
	p.press("Delete…")
	p.wait(`document.querySelectorAll("dialog").length === 2`)
	got := eval[[]string](p, `[...document.querySelectorAll("dialog")].map((d) => document.getElementById(d.getAttribute("aria-labelledby")).innerText)`)
	if got[0] == got[1] {
		t.Errorf("the dialogs are named %q", got)
	}
}

// TestExplorerSetNew sets a property that is among the columns and that no row has.
func TestExplorerSetNew(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	p.openTable(s, "Orders", "")
	p.enter("#select", "Mark")
	p.press("Run")
	p.shown()
	p.setMark("x")
	p.changed("3 entities")
}

// TestExplorerOtherLogin logs in again in another tab while the editor is open: the page takes the
// token of the new session.
func TestExplorerOtherLogin(t *testing.T) {
	s, p := explorer(t, map[string]string{"Notes": `{"PartitionKey":"p","RowKey":"1","A":"one"}`})
	p.openTable(s, "Notes", "")
	p.keys(".\r")
	p.enter(`.property[aria-label="Property A"] textarea`, "typed")
	p.js(`fetch("/ui/api/login", {method: "POST", headers: {"Content-Type": "application/json"},
		body: JSON.stringify({account: ` + quote(s.account) + `, key: ` + quote(s.key) + `})})`)
	p.press("Save")
	p.wait(`document.querySelector("dialog .notice.error") || document.querySelector("#grid").innerText.includes("typed")`)
	if text := eval[string](p, `document.querySelector("dialog .notice.error")?.innerText ?? ""`); text != "" {
		t.Errorf("the page says %q", text)
	}
}

// TestExplorerTwoEditors opens an entity twice before its values are there: there is one editor.
func TestExplorerTwoEditors(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	p.openTable(s, "Orders", "")
	p.js(`(() => {
		const real = window.fetch;
		window.answers = 0;
		window.fetch = async (to, options) => {
			const answer = await real(to, options);
			if (String(to).includes("/api/entity")) setTimeout(() => window.answers++, 100);
			return answer;
		};
	})()`)
	p.hold("/api/entity")
	p.press("Edit…")
	p.press("Edit…")
	p.wait(`window.held > 0`)
	p.js(`release()`)
	p.wait(`window.answers === window.held && document.querySelector("dialog")`)
	if got := eval[int](p, `document.querySelectorAll("dialog").length`); got != 1 {
		t.Errorf("there are %d editors", got)
	}
}

// TestExplorerLeftConflict stores its own version of an entity that changed meanwhile, and leaves
// the editor before the answer: the grid shows it.
func TestExplorerLeftConflict(t *testing.T) {
	s, p := explorer(t, map[string]string{"Notes": `{"PartitionKey":"p","RowKey":"1","A":"one"}`})
	p.openTable(s, "Notes", "")
	p.keys(".\r")
	p.enter(`.property[aria-label="Property A"] textarea`, "mine")
	c := s.service(t).NewClient("Notes")
	if _, err := c.UpdateEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"1","A":"theirs"}`), nil); err != nil {
		t.Fatal(err)
	}
	p.press("Save")
	p.wait(button("Store mine over it"))
	p.hold("/api/entity")
	p.press("Store mine over it")
	p.wait(`window.held === 1`)
	p.press("Cancel")
	p.wait(`!document.querySelector("dialog")`)
	p.js(`release()`)
	p.wait(`document.querySelector("#grid").innerText.includes("mine")`)
}

// TestExplorerFilterLineEnds follows a link to a query for a text with the line ends of Windows.
func TestExplorerFilterLineEnds(t *testing.T) {
	s, p := explorer(t, map[string]string{"Notes": `{"PartitionKey":"p","RowKey":"1","A":"one\r\ntwo"}`})
	p.openTable(s, "Notes", "A eq 'one\r\ntwo'")
	if rows := p.rows(); len(rows) != 1 {
		t.Errorf("the query has %d rows, want 1", len(rows))
	}
	p.choose(`#builder select[aria-label="Operator"]`, "ne")
	p.wait(`document.querySelector("#filter").value.includes(" ne ")`)
	p.press("Run")
	p.wait(`document.querySelector("#grid").innerText.includes("No entity matches")`)
}

// TestExplorerImportTwice presses Import twice before the first answer: there is one job.
func TestExplorerImportTwice(t *testing.T) {
	s, p := explorer(t, map[string]string{"Copy": orders(1)})
	file := ordersFile(t)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	p.hold("/api/import")
	do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
	p.press("Import")
	p.js(`document.querySelector("#import").requestSubmit()`)
	p.js(`release()`)
	p.wait(`document.querySelector("#import-job").innerText.includes("done") && document.querySelector("#jobs .panel")`)
	if got := eval[int](p, `fetch("/ui/api/jobs").then((r) => r.json()).then((r) => r.jobs.length)`); got != 1 {
		t.Errorf("there are %d jobs", got)
	}
	p.wait(`!document.querySelector("#start").disabled`)
}

// TestExplorerCancelFails cancels a job without a connection: the page says so.
func TestExplorerCancelFails(t *testing.T) {
	s, p := explorer(t, map[string]string{"Copy": orders(1)})
	p.open("/ui/")
	p.js(`fetch("/ui/api/import", {method: "POST", headers: {"Content-Type": "application/json",
		"X-Csrf-Token": document.querySelector('meta[name="csrf"]').content},
		body: JSON.stringify({account: ` + quote(s.account) + `, table: "Copy", name: "a.jsonl", size: 9})})`)
	p.open("/ui/transfer?account=" + s.account + "&table=Copy")
	p.js(`(() => {
		const real = window.fetch;
		window.fetch = async (to, options) => {
			if (String(to).includes("api/job/cancel")) throw new TypeError("no connection");
			return real(to, options);
		};
	})()`)
	p.press("Cancel this job")
	p.wait(`document.querySelector("#toast").innerText.includes("does not answer")`)
}

// TestExplorerClearAtOnce clears the query at once after a change in the builder: the filter stays
// empty.
func TestExplorerClearAtOnce(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	p.openTable(s, "Orders", "RowKey eq '001'")
	p.wait(one(`#builder select[aria-label="Operator"]`))
	p.js(`(() => {
		const operator = document.querySelector('#builder select[aria-label="Operator"]');
		operator.value = "ne";
		operator.dispatchEvent(new Event("change"));
		document.querySelector("#clear").click();
		setTimeout(() => { window.later = true; }, 1000);
	})()`)
	p.wait(`window.later && document.querySelectorAll("#grid tbody tr").length === 3`)
	if got := eval[string](p, `document.querySelector("#filter").value`); got != "" {
		t.Errorf("after Clear the filter is %q", got)
	}
}

// TestExplorerDeletedOthers deletes two entities of which one changed meanwhile: the page says that
// the other is deleted.
func TestExplorerDeletedOthers(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(20)})
	p.openTable(s, "Orders", "RowKey eq '001' or RowKey eq '011'")
	c := s.service(t).NewClient("Orders")
	if _, err := c.UpdateEntity(t.Context(), []byte(`{"PartitionKey":"p00","RowKey":"001","Items":1}`), nil); err != nil {
		t.Fatal(err)
	}
	p.js(`document.querySelector("#grid thead input").click()`)
	p.press("Delete…")
	p.press("Delete")
	p.wait(`document.querySelector("dialog")?.innerText.includes("1 of 2 failed")`)
	if text := eval[string](p, `document.querySelector("dialog p").innerText`); !strings.Contains(text, "The others are deleted.") {
		t.Errorf("the page says %q", text)
	}
}

// TestExplorerAltGraph turns pages with keyboards on which "[" and "]" need AltGr or Option. With
// Ctrl alone they turn none.
func TestExplorerAltGraph(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(250)})
	p.openTable(s, "Orders", "")
	key := func(sign, modifiers string) {
		p.js(fmt.Sprintf(`document.dispatchEvent(new KeyboardEvent("keydown", { key: %q, bubbles: true, %s }))`, sign, modifiers))
	}
	first := func(want string) {
		p.wait(fmt.Sprintf(`document.querySelector("#grid tbody tr").innerText.includes(%q)`, want))
		p.shown()
	}
	key("]", "ctrlKey: true, altKey: true")
	first("100")
	key("[", "ctrlKey: true")
	key("]", "altKey: true")
	first("200")
	key("[", "altKey: true")
	first("100")
}
