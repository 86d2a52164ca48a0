package weight_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/weight"
)

// ranges returns one range for each bottom, above and dead, that begin at a, b
// and so on.
func ranges(weights ...[3]int64) *weight.Ranges {
	r := weight.New(len(weights))
	for i, w := range weights {
		r.Starts[i] = []byte{'a' + byte(i)}
		r.Bottom[i], r.Above[i], r.Dead[i] = w[0], w[1], w[2]
	}
	return r
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		name    string
		r       *weight.Ranges
		first   int
		crowded bool
		want    int
	}{
		{"nothing above", ranges([3]int64{100, 0, 0}), 0, true, -1},
		{"as much above as below", ranges([3]int64{100, 100, 100}), 0, false, 0},
		{"a byte less", ranges([3]int64{100, 99, 99}), 0, false, -1},
		{"much above, of which little is hidden", ranges([3]int64{100, 900, 99}), 0, false, -1},
		{"half of all hidden", ranges([3]int64{100, 900, 500}), 0, false, 0},
		{"no bottom and nothing known", ranges([3]int64{0, 5, 5}), 0, false, 0},
		{"from the first on", ranges([3]int64{1, 1, 1}, [3]int64{1, 0, 0}, [3]int64{1, 1, 1}), 1, false, 2},
		{"and around", ranges([3]int64{1, 1, 1}, [3]int64{1, 0, 0}, [3]int64{1, 0, 0}), 1, false, 0},
		{"crowded, half as heavy", ranges([3]int64{100, 90, 90}, [3]int64{100, 50, 50}), 1, true, 1},
		{"crowded, the heaviest", ranges([3]int64{100, 20, 20}, [3]int64{100, 40, 40}, [3]int64{100, 90, 30}), 0, true, 1},
		{"crowded, and nothing hidden", ranges([3]int64{100, 500, 0}), 0, true, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.Due(c.first, c.crowded); got != c.want {
				t.Errorf("Due(%d, %t) = %d, want %d", c.first, c.crowded, got, c.want)
			}
		})
	}
}

func TestExtend(t *testing.T) {
	for _, c := range []struct {
		name string
		r    *weight.Ranges
		want int
	}{
		{"one large", ranges([3]int64{100, 100, 100}, [3]int64{100, 0, 0}), 1},
		{"a neighbour that is due", ranges([3]int64{60, 60, 60}, [3]int64{10, 10, 10}, [3]int64{100, 0, 0}), 2},
		{"small neighbours", ranges([3]int64{20, 20, 20}, [3]int64{20, 0, 0}, [3]int64{20, 0, 0}, [3]int64{20, 0, 0}), 3},
		{"too much for two files", ranges([3]int64{40, 90, 90}, [3]int64{40, 60, 60}), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.Extend(0, 100); got != c.want {
				t.Errorf("Extend = %d, want %d", got, c.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	r := ranges([3]int64{}, [3]int64{}, [3]int64{})
	for key, want := range map[string]int{"": 0, "a": 0, "b": 1, "bz": 1, "c": 2, "z": 2} {
		lower, upper := r.Bounds(want, want+1)
		if got := r.Find([]byte(key)); got != want || string(lower) > key || upper != nil && string(upper) <= key {
			t.Errorf("Find(%q) = %d, want %d within %q and %q", key, got, want, lower, upper)
		}
	}
	if got := ranges([3]int64{5, 4, 3}, [3]int64{1, 1, 1}).Live(); got != 7 {
		t.Errorf("Live = %d, want 7", got)
	}
}
