package scan

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// TestBefore compares before with partitions on both sides of it.
func TestBefore(t *testing.T) {
	at := func(p string) bound {
		return boundOf(filter.Bound{Kind: filter.AfterRow, Key: edm.Key{Partition: p}}, lastBound)
	}
	most := strings.Repeat("\uFFFF", edm.MaxKeyUnits-1)
	for _, c := range []struct{ less, p string }{
		{"a" + most, "b"},
		{"", "a"},
		{"x", "x "},
		{"x\U0010FFFF", "x\uE000"},
		{"x\uD7FF" + most[:len(most)-3], "x\U00010000"},
		{"\U00010000" + most[:len(most)-3], "\U00010001"},
		{"\U000103FF" + most[:len(most)-3], "\U00010400"},
	} {
		if b := at(before(c.p)); at(c.less).compare(b) >= 0 || b.compare(at(c.p)) >= 0 {
			t.Errorf("before(%q) is not between %.10q and it", c.p, c.less)
		}
	}
}
