package e2e

import (
	"fmt"
	"path/filepath"
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
}
