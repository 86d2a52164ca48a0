package e2e

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// The page of the engine leads to the login, and back, after its server was killed and started
// again.
func TestExplorerServerRestarts(t *testing.T) {
	needDirectory(t)
	t.Parallel()
	startChrome(t)
	data, at := filepath.Join(t.TempDir(), "data"), freeAddress(t)
	s := start(t, data, nil, "--admin", at)
	p := newTab(t, s.admin)
	p.login(s)
	p.showEngine()
	s.end(syscall.SIGKILL)
	p.wait(`document.querySelector("#state").textContent.startsWith("No connection")`)
	s = start(t, data, nil, "--admin", at)
	p.wait(`location.pathname === "/ui/login" && document.querySelector("#submit")`)
	p.enter("#account", s.account)
	p.enter("#secret", s.key)
	p.press("Log in")
	p.wait(`location.pathname === "/ui/engine" && document.querySelector('[data-part="Memtables"] .size')?.textContent`)
}

// Entities with 100 properties and with a value of 64 KiB are shown and changed.
func TestExplorerLargeEntities(t *testing.T) {
	var wide strings.Builder
	wide.WriteString(`{"PartitionKey":"p","RowKey":"wide"`)
	for i := range 100 {
		fmt.Fprintf(&wide, `,"Property%03d":%d`, i, i)
	}
	wide.WriteString("}\n")
	s, p := explorer(t, map[string]string{"Large": wide.String()})
	long := strings.Repeat("0123456789abcdef", 2<<10) // 32 Ki characters are 64 KiB
	c := s.service(t).NewClient("Large")
	mode := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
	must(c.UpsertEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"long","Text":"`+long+`"}`), mode))(t)
	p.openTable(s, "Large", "")
	if n := eval[int](p, `document.querySelectorAll("#grid thead th").length`); n != 105 {
		t.Errorf("the grid has %d columns, want 105", n)
	}
	p.press("wide")
	p.enter(`.property[aria-label="Property Property099"] input[aria-label="Value"]`, "990")
	p.press("Save")
	p.wait(`!document.querySelector("dialog")`)
	if got := readEntity(t, s, "Large", "p", "wide"); got["Property099"] != 990.0 || got["Property000"] != 0.0 || len(got) < 100 {
		t.Errorf("the server has %v", got)
	}
	p.shown()
	p.press("long")
	p.wait(one(`.property[aria-label="Property Text"] textarea`))
	text := one(`.property[aria-label="Property Text"] textarea`)
	if n := eval[int](p, text+`.value.length`); n != len(long) {
		t.Errorf("the editor has %d characters, want %d", n, len(long))
	}
	p.js(text + `.setRangeText("X", 0, 1)`)
	p.press("Save")
	p.wait(`!document.querySelector("dialog")`)
	if got := readEntity(t, s, "Large", "p", "long")["Text"]; got != "X"+long[1:] {
		t.Errorf("the server has a text of %d characters", len(fmt.Sprint(got)))
	}
	p.shown()
	p.press("long")
	p.wait(text)
	p.js(text + `.value += "y"`)
	p.press("Save")
	p.wait(one("dialog .notice.error"))
	if text := p.text("dialog .notice.error"); !strings.Contains(text, "PropertyValueTooLarge") {
		t.Errorf("a longer value: %q", text)
	}
	// Of two long values the page shows the part that differs.
	put := func(end string) {
		must(c.UpsertEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"long","Text":"`+long[1:]+end+`"}`), mode))(t)
	}
	put("t")
	p.js(text + `.value = ` + text + `.value.slice(1, -1) + "m"`)
	p.press("Save")
	p.wait(one("tr.differs"))
	cells := eval[[]string](p, `[...document.querySelectorAll("tr.differs bdi")].map((c) => c.innerText)`)
	if len(cells) != 4 || !strings.HasPrefix(cells[3], "…") || !strings.HasSuffix(cells[2], "ef"+"m") || !strings.HasSuffix(cells[3], "ef"+"t") {
		t.Errorf("the versions are %.40q", cells)
	}
}

// A cell without a value, one with an empty value and one with white space differ.
func TestExplorerBlankCells(t *testing.T) {
	s, p := explorer(t, map[string]string{"Blank": `{"PartitionKey":"p","RowKey":"","S":"","W":" \n ","X":"","X@odata.type":"Edm.Binary"}
{"PartitionKey":"p","RowKey":"1"}`})
	p.openTable(s, "Blank", "")
	got := eval[[][]string](p, `[...document.querySelectorAll("#grid tbody tr")].map((r) => [2, 4, 5, 6].map((i) => r.cells[i].innerText))`)
	if want := [][]string{{"empty", "empty", "white space", "empty"}, {"1", "", "", ""}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the cells are %q, want %q", got, want)
	}
}

// The link of an entity on a later page opens its editor on that page.
func TestExplorerLinkLater(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(250)})
	p.openTable(s, "Orders", "")
	p.keys("]")
	p.wait(`document.querySelector("#status").innerText.startsWith("Rows 101 to 200")`)
	p.shown()
	p.press("150")
	p.enter(`.property[aria-label="Property Customer"] textarea`, "changed")
	p.press("Save")
	p.wait(`!document.querySelector("dialog")`)
	p.shown()
	if got := p.text("#status"); !strings.HasPrefix(got, "Rows 101 to 200") {
		t.Errorf("after the editor the page shows %q", got)
	}
	if got := readEntity(t, s, "Orders", "p15", "150")["Customer"]; got != "changed" {
		t.Errorf("the server has %v", got)
	}
}

// The browser asks before it leaves a page whose editor has changes.
func TestExplorerUnsaved(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	p.openTable(s, "Orders", "")
	for _, step := range []struct {
		do   func()
		asks bool
	}{
		{func() { p.press("000") }, false},
		{func() { p.enter(`.property[aria-label="Property Customer"] textarea`, "changed") }, true},
		{func() { p.press("Cancel"); p.wait(`!document.querySelector("dialog")`) }, false},
		{func() { p.press("New entity…"); p.enter(`input[name="RowKey"]`, "9") }, true},
	} {
		step.do()
		if asks := eval[bool](p, `!dispatchEvent(new Event("beforeunload", {cancelable: true}))`); asks != step.asks {
			t.Errorf("the page asks %v, want %v, with %q", asks, step.asks, p.looks())
		}
	}
	p.press("Save")
	p.wait(`!document.querySelector("dialog")`)
}

// The longest name of a table fits a narrow screen.
func TestExplorerLongName(t *testing.T) {
	name := "Table" + strings.Repeat("OfALongName", 6)[:58]
	_, p := explorer(t, map[string]string{name: orders(1)})
	p.screen(390, "light")
	p.open("/ui/")
	p.wait(button(name))
	right := eval[[]float64](p, `[document.documentElement.scrollWidth, document.querySelector(".table-link").getBoundingClientRect().right]`)
	if right[0] > 390 || right[1] > 390 {
		t.Errorf("the page is %.0f pixels wide, and the name ends at %.0f", right[0], right[1])
	}
}

// An entity, and an account, that do not exist any more are named as such. The tabs of a table
// keep its query.
func TestExplorerGone(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	p.open("/ui/table?account=" + s.account + "&table=Orders&filter=Items+ge+0&select=Items")
	p.shown()
	must(s.service(t).NewClient("Orders").DeleteEntity(t.Context(), "p00", "000", nil))(t)
	p.keys(".\r")
	p.wait(`document.querySelector("#toast").innerText === "The entity does not exist any more."`)
	for _, tab := range []string{"Access", "Import and export", "Entities"} {
		p.press(tab)
		p.wait(`document.querySelector('#tabs [aria-current]')?.innerText === ` + quote(tab))
	}
	p.shown()
	if got := eval[[]string](p, `["#filter", "#select"].map((id) => document.querySelector(id).value)`); got[0] != "Items ge 0" || got[1] != "Items" {
		t.Errorf("the query became %q", got)
	}
	p.open("/ui/access?account=nobody&table=Orders")
	p.wait(`document.querySelector("#signature .notice.error")?.innerText === "There is no account of this name."`)
}
