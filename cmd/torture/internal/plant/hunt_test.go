package plant

import "testing"

// TestEveryBugIsCaught proves the crash explorer: each planted bug must break a
// promise before the explorer's budget in CI is used up.
func TestEveryBugIsCaught(t *testing.T) {
	for _, b := range Bugs() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			c, err := Hunt(t.Context(), b, 1, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("after %d states: %.300v", c.States, c.By)
		})
	}
}
