package odata

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestLayoutIsBounded parses entities with long names and with many names, and
// checks how many gaps the parser retains.
func TestLayoutIsBounded(t *testing.T) {
	several := func(n int, name string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%s%d":1,`, name, i)
		}
		return "{" + b.String() + `"PartitionKey":"p","RowKey":"r"}`
	}
	var p parser
	for _, c := range []struct {
		name string
		src  string
		gaps int // that are retained
	}{
		{"two members", several(0, ""), 2},
		{"a long name", several(1, strings.Repeat("n", maxGapBytes)), 0},
		{"some long names", several(20, strings.Repeat("n", maxGapBytes/8)), 7},
		{"many names", several(maxGaps+100, "n"), maxGaps},
		{"two members again", several(0, ""), 2},
	} {
		if err := p.parse(new(edm.Entity), []byte(c.src), ParseOptions{}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if l := &p.layout; len(l.gaps) != c.gaps || len(l.text) > maxGapBytes || cap(l.text) > 2*maxGapBytes || cap(l.gaps) > 2*maxGaps {
			t.Errorf("%s: %d gaps (capacity %d) of %d bytes (capacity %d), want %d gaps",
				c.name, len(l.gaps), cap(l.gaps), len(l.text), cap(l.text), c.gaps)
		}
	}
}

// TestLayoutKeepsOptionalMembers parses entities that lack members of the first one, and
// checks that the layout keeps these members.
func TestLayoutKeepsOptionalMembers(t *testing.T) {
	const all = `{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int64","A":"1","B":2,"C":3}`
	const gaps = 6
	var p parser
	for i, src := range []string{
		all,
		`{"PartitionKey":"p","RowKey":"r","B":2,"C":3}`,
		`{"PartitionKey":"p","RowKey":"r","A":1.5,"C":3}`,
		`{"PartitionKey":"p","RowKey":"r"}`,
		all,
	} {
		if err := p.parse(new(edm.Entity), []byte(src), ParseOptions{}); err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if len(p.layout.gaps) != gaps || i > 0 && p.layout.recording {
			t.Errorf("after %s the layout has %d gaps, recording %v, want %d and false", src, len(p.layout.gaps), p.layout.recording, gaps)
		}
	}
	const other = `{"PartitionKey":"p","RowKey":"r","B":2,"D":3}`
	if err := p.parse(new(edm.Entity), []byte(other), ParseOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(p.layout.gaps) != 4 || !p.layout.recording {
		t.Errorf("after %s the layout has %d gaps, recording %v, want its own 4 and true", other, len(p.layout.gaps), p.layout.recording)
	}
}
