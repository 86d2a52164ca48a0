package cache

import "testing"

// TestLargeValuesAreNotKept: memory that waits for the next load of its kind is
// outside the budget, so it must be little, what rides along included.
func TestLargeValuesAreNotKept(t *testing.T) {
	for _, admit := range []bool{false, true} {
		for _, c := range []struct {
			name  string
			extra int
			fail  bool
			kept  bool
		}{
			{"small", 1 << 10, false, true},
			{"large", 1 << 20, false, false},
			// A loader that fails may have grown the value that it was given.
			{"failed", 1 << 10, true, false},
		} {
			s := New(0)
			if admit {
				s = New(500 << 10) // one shard
			}
			value := new([1]byte)
			first, loaded := s.Acquire(key(1), 100, admit)
			if loaded || first.Value() != nil {
				t.Fatal("the first block is loaded, or has a value")
			}
			first.Fill(value, c.extra)
			first.Release()
			s.Drop(key(1).DB, key(1).File)
			if c.fail {
				again, _ := s.Acquire(key(3), 100, admit)
				if again.Value() != any(value) {
					t.Fatal("the value is not used again")
				}
				again.Fail()
			}
			next, _ := s.Acquire(key(5), 100, admit)
			if got := next.Value() != nil; got != c.kept {
				t.Errorf("admit %t, %s value: kept %t, want %t", admit, c.name, got, c.kept)
			}
			next.Fail()
		}
	}
}
