package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// orders has n entities in partitions of ten.
func orders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"PartitionKey":"p%02d","RowKey":"%03d","Customer":"customer %d","Total":%d.5,"Paid":%t,"Items":%d}`+"\n", i/10, i, i%7, i, i%2 == 0, i%5)
	}
	return b.String()
}

// everyType is an entity with all types.
const everyType = `{"PartitionKey":"types","RowKey":"all","S":"text","I":-5,"L@odata.type":"Edm.Int64","L":"9007199254740993","D":0.5,"B":true,` +
	`"T@odata.type":"Edm.DateTime","T":"2026-07-01T12:00:00.1234567Z","G@odata.type":"Edm.Guid","G":"0f3e4f0e-5d5b-4d6c-9a55-0a1b2c3d4e5f",` +
	`"X@odata.type":"Edm.Binary","X":"iVBORw==","J":"{\"a\":[1,{\"deep\":\"value\"}],\"b\":null}"}` + "\n"

// A user finds, changes and exports an entity in at most ten clicks and ten inputs each.
func TestExplorerTasks(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(200)})
	files := p.downloads()
	within := func(what string) {
		t.Helper()
		t.Logf("%s: %d clicks, %d inputs", what, p.clicks, p.inputs)
		if p.clicks > 10 || p.inputs > 10 {
			t.Errorf("%s takes %d clicks and %d inputs, more than 10", what, p.clicks, p.inputs)
		}
		p.clicks, p.inputs = 0, 0
	}
	p.open("/ui/")
	p.press("Orders")
	p.shown()
	p.press("+ Condition")
	p.enter(".property-name", "Total")
	p.choose(`.condition select[aria-label="Operator"]`, "eq")
	p.enter(".operand", "123.5")
	p.press("Run")
	p.wait(`document.querySelectorAll("#grid tbody tr").length === 1`)
	if got := p.rows(); !slices.Equal(got, []string{"123"}) {
		t.Fatalf("found %v", got)
	}
	within("find")

	p.press("123")
	p.wait(one(".property"))
	p.enter(`.property[aria-label="Property Customer"] textarea`, "somebody else")
	p.press("Save")
	p.wait(`!document.querySelector("dialog") && document.querySelector("#grid").innerText.includes("somebody else")`)
	within("change")

	p.press("Export result…")
	p.press("Export")
	text := string(files("Orders.csv"))
	within("export")
	if lines := strings.Count(text, "\n"); lines != 2 || !strings.Contains(text, "somebody else") {
		t.Errorf("the exported file is %q", text)
	}
	c := s.service(t).NewClient("Orders")
	e, err := c.GetEntity(t.Context(), "p12", "123", nil)
	if err != nil || !strings.Contains(string(e.Value), `"Customer":"somebody else"`) {
		t.Errorf("the server has %s, %v", e.Value, err)
	}
}

func TestExplorerTables(t *testing.T) {
	_, p := explorer(t, map[string]string{"Keep": orders(3)})
	if text := p.text("#accounts"); !strings.Contains(text, "1 table · 3 entities") {
		t.Errorf("the account says %q", text)
	}
	p.keys("n")
	p.enter("dialog input", "1bad")
	p.keys("\r")
	p.wait(one("dialog .notice.error"))
	if text := p.text("dialog .notice.error"); !strings.Contains(text, "InvalidResourceName") {
		t.Errorf("a bad name: %q", text)
	}
	p.enter("dialog input", "Fresh")
	p.press("Create")
	p.wait(`!document.querySelector("dialog") && [...document.querySelectorAll(".table-link")].map((a) => a.textContent).join() === "Fresh,Keep"`)
	p.press("Fresh")
	p.wait(`document.querySelector("#grid")?.innerText.includes("This table is empty")`)
	p.open("/ui/")

	p.press("Clear Keep")
	p.wait(`document.querySelector("dialog[open]")`)
	if !eval[bool](p, button("Delete all entities")+` === undefined`) {
		t.Error("the table can be cleared before its name is typed")
	}
	p.enter("dialog input", "Keep")
	p.press("Delete all entities")
	p.wait(`[...document.querySelectorAll("dialog")].some((d) => d.innerText.includes("done"))`)
	p.press("Close")
	p.wait(`document.querySelector("#accounts").innerText.includes("2 tables · about 0 entities")`)

	p.press("Delete Fresh")
	p.enter("dialog input", "fresh")
	p.keys("\r")
	if !eval[bool](p, `document.querySelector("dialog[open]") !== null`) {
		t.Error("another name was accepted")
	}
	p.enter("dialog input", "Fresh")
	p.press("Delete the table")
	p.wait(`[...document.querySelectorAll(".table-link")].map((a) => a.textContent).join() === "Keep"`)
}

func TestExplorerQuery(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(200)})
	p.openTable(s, "Orders", "PartitionKey eq 'p01' and (Total gt 12 or Paid eq true)")
	if got := len(p.rows()); got != 9 {
		t.Errorf("%d rows, want 9", got)
	}
	// The text became groups.
	p.wait(`document.querySelectorAll("#builder .condition").length === 3 && document.querySelectorAll("#builder .group").length === 2`)
	p.wait(`document.querySelector("#explain .explain")`)
	if text := p.text("#explain"); !strings.Contains(text, "whole partitions") || !strings.Contains(text, "RowKey") || !strings.Contains(text, "Groups read") {
		t.Errorf("explain says %q", text)
	}
	// A change in the builder changes the text.
	p.enter(`.condition[data-path="0"] .operand`, "it's")
	p.wait(`document.querySelector("#filter").value.includes("PartitionKey eq 'it''s'")`)
	p.choose(`.group .group select[aria-label="Combine conditions"]`, "and")
	p.wait(`document.querySelector("#filter").value.includes("Total gt 12 and Paid eq true")`)
	// A change in the text changes the builder.
	p.enter("#filter", "Items ge 3 and not (Customer eq 'customer 1')")
	p.wait(`document.querySelector('.condition[data-path="0"] .property-name')?.value === "Items" && document.querySelector('[aria-label="Not"]')`)
	// An error marks its position, and a wrong value its condition.
	p.enter("#filter", "Items ge 3 and Total ?? 5")
	p.wait(`document.querySelector("#filter-error mark")`)
	if got := eval[string](p, `document.querySelector("#filter-error mark").textContent`); got != "?" {
		t.Errorf("the error marks %q", got)
	}
	// A query that the protocol does not have runs in vain: nothing is left of its explanation.
	p.enter("#filter", "Total gt Items")
	p.press("Run")
	p.wait(`document.querySelector("#grid .notice.error")?.innerText.includes("NotImplemented") && document.querySelector("#explain").hidden`)
	p.wait(`document.querySelector("#filter-error").innerText.includes("There are no functions.")`)
	p.enter("#filter", "Items ge 3 and Paid eq true")
	p.wait(`document.querySelector('.condition[data-path="1"]') && !document.querySelector("#filter-error mark")`)
	p.enter(`.condition[data-path="0"] .operand`, "three")
	p.wait(`document.querySelector('.condition[data-path="0"] .operand[aria-invalid]')`)
	p.enter(`.condition[data-path="0"] .operand`, "4")
	p.wait(`document.querySelector("#filter").value === "Items ge 4 and Paid eq true"`)
	// The URL is the query.
	p.press("Run")
	p.shown()
	p.wait(`new URLSearchParams(location.search).get("filter") === "Items ge 4 and Paid eq true"`)
	rows := p.rows()
	p.open(strings.TrimPrefix(eval[string](p, `location.href`), p.base))
	p.shown()
	if again := p.rows(); len(rows) == 0 || !slices.Equal(rows, again) {
		t.Errorf("the URL gives %v instead of %v", again, rows)
	}
	p.press("Count")
	p.wait(`document.querySelector("#counted").innerText === "20 entities in all"`)
	p.enter("#select", "Total, Items")
	p.press("Run")
	p.wait(`[...document.querySelectorAll("#grid thead th")].map((h) => h.innerText.replace(/\s+/g, " ").trim()).join("|") ===
		"|PartitionKey String|RowKey String|Timestamp DateTime|Total Double|Items Int32"`)
}

func TestExplorerEditor(t *testing.T) {
	s, p := explorer(t, map[string]string{"Things": everyType})
	p.openTable(s, "Things", "")
	types := map[string]string{"L": "Int64", "T": "DateTime", "G": "Guid", "X": "Binary", "D": "Double", "B": "Boolean", "I": "Int32", "S": "String"}
	for name, want := range types {
		head := fmt.Sprintf(`[...document.querySelectorAll("#grid thead th")].find((h) => h.title === %q)`, name)
		if got := eval[string](p, head+`.querySelector(".type").innerText`); got != want {
			t.Errorf("column %s: %s, want %s", name, got, want)
		}
	}
	// A JSON value is a tree for the keyboard.
	p.clickOn(`[...document.querySelectorAll("#grid tbody td")].find((c) => c.innerText.startsWith('{"a"'))`)
	p.keys("v")
	p.wait(one(`[role="tree"]`))
	p.js(`document.querySelector('[role="tree"] [tabindex="0"]').focus()`)
	p.keys(kb.ArrowDown + kb.ArrowRight + kb.ArrowDown + kb.ArrowDown + kb.ArrowRight + kb.ArrowDown)
	if got := eval[string](p, `document.activeElement.innerText`); !strings.Contains(got, "deep") || !strings.Contains(got, "value") {
		t.Errorf("the tree is at %q", got)
	}
	p.keys(kb.Escape)
	p.wait(`!document.querySelector("dialog")`)
	// A new entity with all types, first with a value that is not valid.
	p.keys("n")
	p.enter(`input[name="PartitionKey"]`, "new")
	p.enter(`input[name="RowKey"]`, "1")
	values := [][3]string{
		{"S", "String", "çédille"},
		{"I", "Int32", "2147483648"},
		{"L", "Int64", "-9223372036854775808"},
		{"D", "Double", "-0.25"},
		{"B", "Boolean", "false"},
		{"T", "DateTime", "2026-01-02T03:04:05Z"},
		{"G", "Guid", "00000000-0000-0000-0000-00000000000a"},
		{"X", "Binary", "AAEC"},
	}
	for i, v := range values {
		p.press("Add property")
		at := fmt.Sprintf(".property:nth-child(%d) ", i+1)
		p.enter(at+`[aria-label="Property name"]`, v[0])
		p.choose(at+`[aria-label="Type"]`, "Edm."+v[1])
		if v[1] == "Boolean" {
			p.choose(at+`[aria-label="Value"]`, v[2])
		} else {
			p.enter(at+`[aria-label="Value"]`, v[2])
		}
	}
	p.press("Save")
	// The value that is not valid has the reason, and so has a name.
	wrong := func(control, reason string) {
		t.Helper()
		at := `document.querySelector('.property:nth-child(2) .problem')`
		p.wait(at + `?.checkVisibility() && ` + at + `.innerText.includes(` + quote(reason) + `)`)
		if got := eval[[]string](p, `[...document.querySelectorAll('dialog [aria-invalid="true"]')].map((c) => c.ariaLabel)`); !slices.Equal(got, []string{control}) {
			t.Errorf("%q are marked for %q", got, reason)
		}
	}
	wrong("Value", `"2147483648": an Edm.Int32 is a whole number`)
	p.enter(`.property:nth-child(2) [aria-label="Property name"]`, "1I")
	p.enter(`.property:nth-child(2) [aria-label="Value"]`, "2147483647")
	p.press("Save")
	wrong("Property name", "a property's name is an identifier")
	p.enter(`.property:nth-child(2) [aria-label="Property name"]`, "I")
	p.enter(`input[name="RowKey"]`, "1#")
	p.press("Save")
	p.wait(`document.querySelector("dialog .notice.error").innerText.includes("a key has none of")`)
	p.wait(`document.querySelector('[name="RowKey"]').ariaInvalid === "true"`)
	p.enter(`input[name="RowKey"]`, "1")
	p.keys("\r", chromedp.ModifierCtrl)
	p.wait(`!document.querySelector("dialog")`)
	got := readEntity(t, s, "Things", "new", "1")
	want := map[string]any{
		"S": "çédille", "I": 2147483647.0, "L": "-9223372036854775808", "L@odata.type": "Edm.Int64", "D": -0.25, "B": false, "T": "2026-01-02T03:04:05Z",
		"T@odata.type": "Edm.DateTime", "G": "00000000-0000-0000-0000-00000000000a", "G@odata.type": "Edm.Guid", "X": "AAEC", "X@odata.type": "Edm.Binary",
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
	// The same key again is the protocol's error.
	p.press("New entity…")
	p.enter(`input[name="PartitionKey"]`, "new")
	p.enter(`input[name="RowKey"]`, "1")
	p.press("Save")
	p.wait(one("dialog .notice.error"))
	if text := p.text("dialog .notice.error"); !strings.Contains(text, "EntityAlreadyExists") {
		t.Errorf("a second insert: %q", text)
	}
	p.press("Cancel")
	// Delete, after a question.
	p.clickOn(`[...document.querySelectorAll("#grid tbody a")].find((a) => a.innerText === "1")`)
	p.press("Delete…")
	p.press("Delete")
	p.wait(`!document.querySelector("dialog") && document.querySelectorAll("#grid tbody tr").length === 1`)
}

// readEntity returns an entity that the server has.
func readEntity(t *testing.T, s *server, table, partition, row string) map[string]any {
	t.Helper()
	e, err := s.service(t).NewClient(table).GetEntity(t.Context(), partition, row, nil)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(e.Value, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// An entity that changed meanwhile is not overwritten: both versions are shown.
func TestExplorerConflict(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	c := s.service(t).NewClient("Orders")
	write := func(text string) {
		t.Helper()
		if _, err := c.UpdateEntity(t.Context(), []byte(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	p.openTable(s, "Orders", "")
	edit := func(text string) {
		t.Helper()
		p.press("000")
		p.enter(`.property[aria-label="Property Customer"] textarea`, text)
	}
	edit("mine")
	write(`{"PartitionKey":"p00","RowKey":"000","Customer":"theirs"}`)
	p.press("Save")
	p.wait(one(".conflict"))
	text := p.text("tr.differs")
	if !strings.Contains(text, "customer 0") || !strings.Contains(text, "mine") || !strings.Contains(text, "theirs") {
		t.Errorf("the versions are %q", text)
	}
	if got := readEntity(t, s, "Orders", "p00", "000")["Customer"]; got != "theirs" {
		t.Errorf("stored is %v before a choice", got)
	}
	p.press("Store mine over it")
	p.wait(`!document.querySelector("dialog")`)
	if got := readEntity(t, s, "Orders", "p00", "000")["Customer"]; got != "mine" {
		t.Errorf("stored is %v", got)
	}
	edit("mine again")
	if _, err := c.DeleteEntity(t.Context(), "p00", "000", nil); err != nil {
		t.Fatal(err)
	}
	p.press("Save")
	p.wait(`document.querySelector(".conflict")?.innerText.includes("deleted meanwhile")`)
	if text := p.text(".conflict p"); !strings.Contains(text, "Someone else deleted it") {
		t.Errorf("the page says %q", text)
	}
	p.press("Leave it deleted")
	p.wait(`!document.querySelector("dialog") && document.querySelectorAll("#grid tbody tr").length === 2`)
}

// Many entities are changed, copied and deleted at once. One that changed meanwhile stays.
func TestExplorerMany(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(120)})
	p.grantClipboard()
	p.openTable(s, "Orders", "PartitionKey eq 'p03'")
	p.keys(".")
	p.keys("a", chromedp.ModifierCtrl)
	p.wait(`document.querySelector("#selected").innerText === "10 selected"`)
	p.press("Set a property…")
	p.enter("dialog input", "Items")
	p.keys(kb.Tab)
	p.enter(`dialog input[dir="auto"]`, "77")
	p.press("Set")
	p.wait(`!document.querySelector("dialog") && [...document.querySelectorAll("#grid tbody tr")].every((r) => [...r.cells].some((c) => c.innerText === "77"))`)
	if got := readEntity(t, s, "Orders", "p03", "030")["Customer"]; got != "customer 2" {
		t.Errorf("another property became %v", got)
	}
	p.clickOn(`document.querySelector("#grid tbody tr:nth-child(1) input")`)
	p.clickOn(`document.querySelector("#grid tbody tr:nth-child(2) input")`)
	p.press("Copy JSON")
	p.wait(`!document.querySelector("#toast").hidden && document.querySelector("#toast").innerText.includes("JSON")`)
	var copied []map[string]any
	if err := json.Unmarshal([]byte(p.clipboard()), &copied); err != nil || len(copied) != 2 || copied[1]["Items"] != 77.0 || copied[1]["RowKey"] != "031" {
		t.Errorf("copied %v, %v", copied, err)
	}
	p.press("Copy CSV")
	p.wait(`document.querySelector("#toast").innerText.includes("CSV")`)
	text := p.clipboard()
	if !strings.HasPrefix(text, "PartitionKey,RowKey,Timestamp,") || !strings.Contains(text, "Items@Edm.Int32") || strings.Count(text, "\n") != 3 {
		t.Errorf("copied %q", text)
	}
	c := s.service(t).NewClient("Orders")
	if _, err := c.UpdateEntity(t.Context(), []byte(`{"PartitionKey":"p03","RowKey":"031","Items":1}`), nil); err != nil {
		t.Fatal(err)
	}
	p.keys(kb.Delete)
	p.press("Delete")
	p.wait(`document.querySelector("dialog")?.innerText.includes("of 2 failed")`)
	if text := p.text("dialog h2 + p"); strings.Contains(text, "The others") {
		t.Errorf("both failed: %q", text)
	}
	if cause := p.text("dialog tbody tr"); !strings.Contains(cause, "031") { // before those that it keeps from being deleted
		t.Errorf("the first failure is %q", cause)
	}
	p.press("Close")
	// The transaction of a partition is all or nothing. The page reads the rows again.
	p.wait(`[...document.querySelectorAll("#grid tbody tr")].some((r) => r.innerText.includes("031") && ![...r.cells].some((c) => c.innerText === "77"))`)
	p.shown()
	if got := len(p.rows()); got != 10 {
		t.Errorf("%d rows remain", got)
	}
	p.js(`document.querySelector("#grid thead input").click()`)
	p.press("Delete…")
	p.press("Delete")
	p.wait(`document.querySelector("#grid").innerText.includes("No entity matches")`)
}
