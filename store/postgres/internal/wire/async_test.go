package wire

import (
	"errors"
	"strings"
	"testing"
)

// TestErrorsWithoutStandbyGiveTheReasonOnce checks that the errors of commits that wait for no
// standby have one statement each, and are ErrAsync.
func TestErrorsWithoutStandbyGiveTheReasonOnce(t *testing.T) {
	for _, err := range []error{ErrNoStandby, errHidden} {
		if !errors.Is(err, ErrAsync) {
			t.Errorf("%q is not ErrAsync", err)
		}
		if text := err.Error(); strings.Contains(text, ErrAsync.Error()) || strings.Count(text, "commits")+strings.Count(text, "synchronous_standby_names") != 1 {
			t.Errorf("%q says twice that commits do not wait", text)
		}
	}
}
