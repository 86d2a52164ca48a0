package selfsigned

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestClockSetBack makes a certificate while the clock is ahead, and another one when it is set right, because clients refuse
// the first one, which is not valid yet.
func TestClockSetBack(t *testing.T) {
	dir, before := t.TempDir(), []byte(nil)
	for _, c := range []struct {
		ahead time.Duration
		same  bool // as the certificate before
	}{{30 * 24 * time.Hour, false}, {30*24*time.Hour + time.Minute, true}, {30*24*time.Hour - 30*time.Minute, true}, {0, false}} {
		synctest.Test(t, func(t *testing.T) { // the clock of each begins at the same moment
			time.Sleep(c.ahead)
			pair, err := In(dir, "localhost")
			if err != nil {
				t.Fatal(err)
			}
			if now := time.Now(); now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
				t.Errorf("the clock is ahead by %v: the certificate is valid from %v to %v, and now it is %v",
					c.ahead, pair.Leaf.NotBefore, pair.Leaf.NotAfter, now)
			}
			if same := bytes.Equal(pair.Leaf.Raw, before); same != c.same {
				t.Errorf("the clock is ahead by %v: the certificate is the same one: %v, want %v", c.ahead, same, c.same)
			}
			before = pair.Leaf.Raw
		})
	}
}
