package logtext

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"Orders", "Orders"},
		{"日本 x", "日本 x"},
		{"a\nlevel=ERROR", `a\nlevel=ERROR`},
		{"\x1b[31m", `\x1b[31m`},
		{"\u009b31m", `\u009b31m`},
		{"\x7f\u2028\u202e", `\x7f\u2028\u202e`},
		{"\xff", `\xff`},
		{strings.Repeat("x", maxPrinted+1), strings.Repeat("x", maxPrinted)},
	} {
		if got := Printable(c.in); got != c.want {
			t.Errorf("Printable(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestAdvice writes errors of several lines, with and without a next step, on one line.
func TestAdvice(t *testing.T) {
	err := errors.Join(errors.New("the disk\x1b"), errors.New("the log"))
	if got, want := Advice(err), `the disk\x1b; the log`; got != want {
		t.Errorf("without a next step: %q, want %q", got, want)
	}
	if got, want := Advice(hint.With(err, "repeat it")), `the disk\x1b; the log; repeat it`; got != want {
		t.Errorf("with a next step: %q, want %q", got, want)
	}
}
