package ui

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpeningWait waits for a browser: a while after the program that opens it has ended, not
// at all without a browser, and not for ever if that program is the browser.
func TestOpeningWait(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // the end of the program
		err   error
		want  time.Duration
	}{
		{"the program ends", time.Second, nil, time.Second + readTime},
		{"there is no browser", time.Second, errors.New("exit status 3"), time.Second},
		{"the program is the browser", time.Hour, nil, openTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &opening{ended: make(chan error, 1)}
				time.AfterFunc(c.after, func() { o.ended <- c.err })
				begin := time.Now()
				o.wait(t.Context())
				if got := time.Since(begin); got != c.want {
					t.Errorf("waits %v, want %v", got, c.want)
				}
			})
		})
	}
	(*opening)(nil).wait(t.Context())
}
