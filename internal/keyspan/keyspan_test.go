package keyspan

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/filter"
)

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		filter string
		scan   Scan
		want   string
	}{
		{"", Table, "all keys"},
		{"N gt 1", Table, "all keys"},
		{"PartitionKey eq 'a' or N gt 1", Table, "all keys"},
		{"PartitionKey eq 'a'", Partitions, `PartitionKey "a"`},
		{"PartitionKey eq 'a' and RowKey eq '1'", Points, `PartitionKey "a" RowKey "1"`},
		{"PartitionKey eq 'a' and RowKey gt '1'", Rows, `after PartitionKey "a" RowKey "1" to PartitionKey "a"`},
		{"PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '3'", Rows, `from PartitionKey "a" RowKey "1" before PartitionKey "a" RowKey "3"`},
		{"PartitionKey gt 'a'", Partitions, `after PartitionKey "a"`},
		{"PartitionKey ge 'a' and PartitionKey lt 'b'", Partitions, `from PartitionKey "a" before PartitionKey "b"`},
		{"PartitionKey le 'b'", Partitions, `to PartitionKey "b"`},
		{
			"PartitionKey eq 'a' and RowKey eq '1' or PartitionKey eq 'b' and RowKey le '2'", Rows,
			`PartitionKey "a" RowKey "1"; from PartitionKey "b" to PartitionKey "b" RowKey "2"`,
		},
		{"PartitionKey eq 'a' and PartitionKey eq 'b'", Nothing, ""},
	} {
		e, err := filter.Parse(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, r := range e.Ranges() {
			texts = append(texts, Describe(r))
		}
		if got := strings.Join(texts, "; "); got != c.want || Of(e.Ranges()) != c.scan {
			t.Errorf("%s: got %s of %v, want %s of %v", c.filter, got, Of(e.Ranges()), c.want, c.scan)
		}
	}
}

// TestAdvice checks that the advised condition would limit what a filter reads: one on RowKey
// does not where the filter selects a range of partitions, whether it has one or not.
func TestAdvice(t *testing.T) {
	const whole, equal = "whole partitions", `"PartitionKey eq"`
	for _, c := range []struct{ filter, reads, condition string }{
		{"", "the whole table", "on PartitionKey"},
		{"RowKey eq '1'", "the whole table", "on PartitionKey"},
		{"PartitionKey eq 'a'", whole, "on RowKey"},
		{"(PartitionKey eq 'a' or PartitionKey eq 'b') and N gt 1", whole, "on RowKey"},
		{"PartitionKey eq 'a' and (RowKey eq '1' or N gt 1)", whole, "on RowKey"},
		{"PartitionKey ge 'a' and RowKey eq '1'", whole, equal},
		{"PartitionKey gt 'a' and PartitionKey lt 'b' and RowKey eq '1'", whole, equal},
		{"PartitionKey le 'b'", whole, equal},
		{"PartitionKey ne 'b' and RowKey eq '1'", whole, equal},
		{"PartitionKey eq 'a' or PartitionKey ge 'b' and RowKey eq '1'", whole, equal},
		{"PartitionKey eq 'a' and RowKey ne '1'", "", ""},
		{"PartitionKey eq 'a' and RowKey eq '1'", "", ""},
		{"PartitionKey eq 'a' and PartitionKey eq 'b'", "", ""},
	} {
		e, err := filter.Parse(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		if reads, condition := Advice(e.Ranges()); reads != c.reads || condition != c.condition {
			t.Errorf("%s: got %q, %q, want %q, %q", c.filter, reads, condition, c.reads, c.condition)
		}
	}
}
