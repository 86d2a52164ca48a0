package keyrange

import "testing"

// testRanges returns one range for each bottom, above and garbage. They start at
// a, b and so on.
func testRanges(sizes ...[3]int64) Ranges {
	var rs Ranges
	for i, s := range sizes {
		rs = append(rs, Range{Start: []byte{'a' + byte(i)}, Bottom: s[0], Above: s[1], Garbage: s[2]})
	}
	return rs
}

func TestPickRange(t *testing.T) {
	for _, c := range []struct {
		name       string
		rs         Ranges
		first      int
		spaceShort bool
		want       int
	}{
		{"nothing above", testRanges([3]int64{100, 0, 0}), 0, true, -1},
		{"as much above as below", testRanges([3]int64{100, 100, 100}), 0, false, 0},
		{"one byte less", testRanges([3]int64{100, 99, 99}), 0, false, -1},
		{"much above, little of it garbage", testRanges([3]int64{100, 900, 99}), 0, false, -1},
		{"half of all is garbage", testRanges([3]int64{100, 900, 500}), 0, false, 0},
		{"no bottom", testRanges([3]int64{0, 5, 5}), 0, false, 0},
		{"search from first", testRanges([3]int64{1, 1, 1}, [3]int64{1, 0, 0}, [3]int64{1, 1, 1}), 1, false, 2},
		{"search wraps around", testRanges([3]int64{1, 1, 1}, [3]int64{1, 0, 0}, [3]int64{1, 0, 0}), 1, false, 0},
		{"space is short, a third of garbage", testRanges([3]int64{100, 90, 90}, [3]int64{100, 50, 50}), 1, true, 1},
		{"space is short, the most garbage", testRanges([3]int64{100, 20, 20}, [3]int64{100, 40, 40}, [3]int64{100, 90, 30}), 0, true, 1},
		{"space is short, no garbage", testRanges([3]int64{100, 500, 0}), 0, true, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.rs.Pick(c.first, c.spaceShort); got != c.want {
				t.Errorf("pick(%d, %t) = %d, want %d", c.first, c.spaceShort, got, c.want)
			}
		})
	}
}

func TestPickRangeEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		rs   Ranges
		want int
	}{
		{"one large", testRanges([3]int64{100, 100, 100}, [3]int64{100, 0, 0}), 1},
		{"a neighbour that is mostly garbage", testRanges([3]int64{60, 60, 60}, [3]int64{10, 10, 10}, [3]int64{100, 0, 0}), 2},
		{"small neighbours", testRanges([3]int64{20, 20, 20}, [3]int64{20, 0, 0}, [3]int64{20, 0, 0}, [3]int64{20, 0, 0}), 3},
		{"too much for two files", testRanges([3]int64{40, 90, 90}, [3]int64{40, 60, 60}), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.rs.PickEnd(0, 100); got != c.want {
				t.Errorf("pickEnd = %d, want %d", got, c.want)
			}
		})
	}
}

// TestMostlyDeleted adds files of tombstones to ranges of 100, 300 and no entries, which start
// at a, b and c.
func TestMostlyDeleted(t *testing.T) {
	type file struct {
		lo, hi string
		n      uint64
	}
	for _, c := range []struct {
		name  string
		files []file
		want  int
	}{
		{"none", nil, -1},
		{"a quarter of a range", []file{{"b", "bz", 75}}, 1},
		{"one less", []file{{"b", "bz", 74}}, -1},
		{"two files", []file{{"b", "b1", 40}, {"b2", "b3", 35}}, 1},
		{"shared with another range", []file{{"a", "b", 99}}, -1},
		{"a quarter of two", []file{{"a", "b", 100}}, 0},
		{"shares add up", []file{{"a", "b", 99}, {"a1", "a2", 1}}, 0},
		{"nothing below", []file{{"c", "z", 1}}, 2},
		{"little and nothing below", []file{{"b", "z", 1}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := testRanges([3]int64{}, [3]int64{}, [3]int64{})
			rs[0].Entries, rs[1].Entries = 100, 300
			for _, f := range c.files {
				rs.AddTombstones([]byte(f.lo), []byte(f.hi), f.n)
			}
			if got := rs.MostlyDeleted(); got != c.want {
				t.Errorf("MostlyDeleted = %d, want %d", got, c.want)
			}
		})
	}
}

func TestFindRange(t *testing.T) {
	rs := testRanges([3]int64{}, [3]int64{}, [3]int64{})
	for key, want := range map[string]int{"": 0, "a": 0, "b": 1, "bz": 1, "c": 2, "z": 2} {
		lower, upper := rs.Bounds(want, want+1)
		if got := rs.Find([]byte(key)); got != want || string(lower) > key || upper != nil && string(upper) <= key {
			t.Errorf("find(%q) = %d, want %d within %q and %q", key, got, want, lower, upper)
		}
	}
	if got := testRanges([3]int64{5, 4, 3}, [3]int64{1, 1, 1}).Live(); got != 7 {
		t.Errorf("live = %d, want 7", got)
	}
}
