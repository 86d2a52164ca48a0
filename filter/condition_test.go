package filter_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// TestTreeTexts compares the text of the tree of a filter.
func TestTreeTexts(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "true",
		"Paid":                          "Paid eq true",
		"not Paid and 5 lt Total":       "not (Paid eq true) and Total gt 5",
		"A eq 'it''s' or B eq 5L":       "A eq 'it''s' or B eq 5L",
		"(A eq 1 or B eq 2) and C eq 3": "(A eq 1 or B eq 2) and C eq 3",
		"A eq X'00ff' and B eq 1.0":     "A eq X'00ff' and B eq 1.0",
		"not (A eq 1 or not (B eq 2))":  "not (A eq 1 or not (B eq 2))",
		"true":                          "true",
		"5 lt not and and eq 1":         "5 lt not and and eq 1",
		"Timestamp ge datetime'2024-01-01T00:00:00Z'": "Timestamp ge datetime'2024-01-01T00:00:00Z'",
	} {
		e, err := filter.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got := string(e.Tree().AppendText(nil))
		if got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
		if _, err := filter.Parse(got); err != nil {
			t.Errorf("%s becomes %s: %v", text, got, err)
		}
	}
}

// TestGroupsOfOne compares the texts of trees with groups of one condition, as a program can build
// them: a group in between must not take the parentheses of an or.
func TestGroupsOfOne(t *testing.T) {
	is := func(name string) filter.Tree { return filter.Tree{Op: "eq", Name: name, Value: edm.Int32(1)} }
	and := func(items ...filter.Tree) filter.Tree { return filter.Tree{Op: "and", Items: items} }
	or := func(items ...filter.Tree) filter.Tree { return filter.Tree{Op: "or", Items: items} }
	for _, c := range []struct {
		tree filter.Tree
		want string
	}{
		{and(is("A"), and(or(is("B"), is("C")))), "A eq 1 and (B eq 1 or C eq 1)"},
		{and(and(or(and(or(is("A"), is("B"))))), is("C")), "(A eq 1 or B eq 1) and C eq 1"},
		{and(or(is("A")), is("B")), "A eq 1 and B eq 1"},
		{and(and(or(is("A"), is("B")))), "A eq 1 or B eq 1"},
		{or(and(or(is("A"), is("B"))), is("C")), "A eq 1 or B eq 1 or C eq 1"},
	} {
		if got := string(c.tree.AppendText(nil)); got != c.want {
			t.Errorf("%+v becomes %s, want %s", c.tree, got, c.want)
		}
	}
}

// TestTreesKeepRows compares the rows that a random filter and the text of its tree keep.
func TestTreesKeepRows(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	leaves := []string{"A eq 1", "2 le A", "B", "not B", "C gt 'm'", "D lt 1.5", "PartitionKey ge 'p'", "false"}
	for range 2000 {
		var build func(depth int) string
		build = func(depth int) string {
			if depth == 0 || rng.IntN(3) == 0 {
				return leaves[rng.IntN(len(leaves))]
			}
			join := []string{" and ", " or "}[rng.IntN(2)]
			list := make([]string, 2+rng.IntN(2))
			for i := range list {
				list[i] = build(depth - 1)
			}
			text := "(" + strings.Join(list, join) + ")"
			if rng.IntN(4) == 0 {
				text = "not " + text
			}
			return text
		}
		text := build(3)
		e := filter.MustParse(text)
		again, err := filter.Parse(string(e.Tree().AppendText(nil)))
		if err != nil {
			t.Fatalf("seed %d: the tree of %s: %v", seed, text, err)
		}
		for range 5 {
			row := edm.Entity{Key: edm.Key{Partition: []string{"a", "p", "q"}[rng.IntN(3)]}, Properties: edm.Properties{
				{Name: "A", Value: edm.Int32(int32(rng.IntN(4)))},
				{Name: "B", Value: edm.Boolean(rng.IntN(2) == 0)},
				{Name: "C", Value: edm.String([]string{"a", "z"}[rng.IntN(2)])},
				{Name: "D", Value: edm.Double(float64(rng.IntN(3)))},
			}}
			if e.Match(row.View()) != again.Match(row.View()) {
				t.Fatalf("seed %d: %s and %s differ on %v", seed, e, again, row)
			}
		}
	}
}
