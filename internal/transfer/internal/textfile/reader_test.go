package textfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tablerock-db/tablerock/edm"
)

func TestLine(t *testing.T) {
	long := strings.Repeat("x", MaxRecordBytes)
	r := NewReader(strings.NewReader("a\n\nb\r\n" + long + "y\nc"))
	for _, want := range []string{"1 a", "2 ", "3 b", "4: the record is longer than 16777216 bytes", "5 c", "6: EOF", "6: EOF"} {
		text, line, err := r.Line()
		got := fmt.Sprintf("%d %s", line, text)
		if err != nil {
			got = fmt.Sprintf("%d: %v", line, err)
		}
		if got != want {
			t.Errorf("%.100q, want %q", got, want)
		}
	}
	if !errors.Is(errTooLong, edm.ErrInvalid) {
		t.Error("text that is not in its format is not invalid")
	}
}

func TestDiscard(t *testing.T) {
	broken := errors.New("broken disk")
	for _, want := range []error{nil, broken} {
		file := io.Reader(strings.NewReader("a\nb\n"))
		if want != nil {
			file = io.MultiReader(file, iotest.ErrReader(want))
		}
		r := NewReader(file)
		if text, _, err := r.Line(); string(text) != "a" || err != nil {
			t.Fatalf("%q, %v", text, err)
		}
		if err := r.Discard(t.Context()); err != want {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewReader(strings.NewReader("a")).Discard(ctx); err != context.Canceled {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
