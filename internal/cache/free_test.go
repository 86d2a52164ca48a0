package cache

import "testing"

// TestFreeEntryLimit checks that free entries keep no large values, because their
// memory is outside the budget.
func TestFreeEntryLimit(t *testing.T) {
	for _, admit := range []bool{false, true} {
		for _, c := range []struct {
			name  string
			extra int
			fail  bool
			kept  bool
		}{
			{"small", 1 << 10, false, true},
			{"large", 1 << 20, false, false},
			// A failed loader may have grown the value.
			{"failed", 1 << 10, true, false},
		} {
			s := New(0)
			if admit {
				s = New(500 << 10) // one shard
			}
			value := new([1]byte)
			first, loaded := s.Acquire(key(1), 100, admit)
			if loaded || first.Value() != nil {
				t.Fatal("the first block is cached or has a value")
			}
			first.Fill(value, c.extra)
			first.Release()
			s.Drop(key(1).DB, key(1).File)
			if c.fail {
				again, _ := s.Acquire(key(3), 100, admit)
				if again.Value() != any(value) {
					t.Fatal("the value is not reused")
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
