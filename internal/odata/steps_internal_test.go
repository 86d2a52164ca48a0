package odata

import (
	"fmt"
	"strings"
	"testing"
)

// TestStepsAreFew reads entities of long and of many names: of what they taught the
// parser, it keeps little.
func TestStepsAreFew(t *testing.T) {
	several := func(n int, name string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%s%d":1,`, name, i)
		}
		return "{" + b.String() + `"PartitionKey":"p","RowKey":"r"}`
	}
	var p parser
	for _, c := range []struct {
		name  string
		src   string
		steps int // that are kept
	}{
		{"two members", several(0, ""), 2},
		{"a long name", several(1, strings.Repeat("n", maxStepBytes)), 0},
		{"some long names", several(20, strings.Repeat("n", maxStepBytes/8)), 7},
		{"many names", several(maxSteps+100, "n"), maxSteps},
		{"two members again", several(0, ""), 2},
	} {
		if _, err := p.parse([]byte(c.src), ParseOptions{}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if s := &p.steps; len(s.all) != c.steps || len(s.text) > maxStepBytes || cap(s.text) > 2*maxStepBytes || cap(s.all) > 2*maxSteps {
			t.Errorf("%s: %d steps (room for %d) of %d bytes (room for %d), want %d steps", c.name, len(s.all), cap(s.all), len(s.text), cap(s.text), c.steps)
		}
	}
}
