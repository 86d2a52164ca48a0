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
