package filter

import (
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func TestResidual(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"PartitionKey eq 'a'", ""},
		{"PartitionKey ge 'a' and PartitionKey lt 'b'", ""},
		{"PartitionKey eq 'a' and RowKey ge '1'", ""},
		{"PartitionKey eq 'a' and RowKey eq '1'", ""},
		{"PartitionKey eq '' and RowKey eq ''", ""},
		{"PartitionKey eq 'a' and not (RowKey lt '1')", ""},
		{"PartitionKey eq 'a' and N gt 5", "N gt 5"},
		{"N gt 5 and PartitionKey eq 'a' and S eq 'x'", "N gt 5 and S eq 'x'"},
		{"PartitionKey ge 'a' and RowKey ge '1'", "RowKey ge '1'"},
		{"RowKey eq '1'", "RowKey eq '1'"},
		{"PartitionKey ne 'a'", ""},
		{"PartitionKey eq 'a' or PartitionKey eq 'b'", "PartitionKey eq 'a' or PartitionKey eq 'b'"},
		{"N gt 5", "N gt 5"},
	} {
		want := ""
		if c.want != "" {
			want = MustParse(c.want).Predicate().Root().String()
		}
		got := ""
		if p := MustParse(c.text).Residual(); p != nil {
			got = p.Root().String()
		}
		if got != want {
			t.Errorf("Residual of %s: got %q, want %q", c.text, got, want)
		}
	}
	if p := (*Expr)(nil).Residual(); p != nil {
		t.Errorf("Residual of no filter: got %v", p.Root())
	}
}

// checkResidual fails unless e's residual decides, of a key within e's ranges,
// what e decides.
func checkResidual(t *testing.T, e *Expr, ent *edm.Entity) {
	t.Helper()
	p := e.Residual()
	got := p == nil || p.Match(ent.View())
	if want := e.Match(ent.View()); got != want {
		t.Errorf("%s of %+v: residual says %v, the filter %v", e, ent, got, want)
	}
}
