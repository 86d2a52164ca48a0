package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// TestCorruptError finds CorruptError in wrapped damage of every package below.
func TestCorruptError(t *testing.T) {
	inner := corrupt.Newf("000007.sst", 42, "%d bytes", 3)
	for name, err := range map[string]error{
		"direct":  inner,
		"wrapped": fmt.Errorf("open: %w", inner),
		"joined":  errors.Join(errors.New("close"), fmt.Errorf("read: %w", inner)),
		"public":  &CorruptError{File: "000007.sst", Offset: 42, What: "3 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var damage *CorruptError
			if !errors.As(err, &damage) || *damage != (CorruptError{"000007.sst", 42, "3 bytes"}) {
				t.Errorf("errors.As gives %+v", damage)
			}
			if !errors.Is(err, ErrCorrupt) || !errors.Is(damage, ErrCorrupt) {
				t.Errorf("%v is not ErrCorrupt", err)
			}
			if got, want := damage.Error(), "000007.sst: corrupt at offset 42: 3 bytes"; got != want {
				t.Errorf("message: got %q, want %q", got, want)
			}
			var op *OpError
			if errors.As(err, &op) {
				t.Errorf("errors.As finds %v as an OpError", err)
			}
		})
	}
}
