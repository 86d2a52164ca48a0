package e2e

import (
	"testing"
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
