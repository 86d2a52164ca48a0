package where

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetrying checks that each repetition of one request is noted, at the shortest delays of
// package remote, and that those of many requests at once are noted as one.
func TestRetrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		retrying := Retrying(func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
		delay := 800 * time.Millisecond * 8 / 10
		var want []string
		for n := 1; n <= 3; n++ {
			for range 16 {
				retrying("busy", n, 6)
			}
			want = append(want, fmt.Sprintf("busy; trying again (%d of 6)", n))
			time.Sleep(delay << (n - 1))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
