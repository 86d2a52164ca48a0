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
