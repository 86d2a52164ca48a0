package plant

import "testing"

// TestEveryBugIsFound checks that package crash finds each planted bug within the budget of
// CI.
func TestEveryBugIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("torture planted does the same, and the stage torture of .ci/run runs it")
	}
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
