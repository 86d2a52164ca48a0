package arena

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

func TestMemory(t *testing.T) {
	for _, n := range []int{0, 1, minMapped - 1, minMapped, minMapped + 1, 5 << 20} {
		t.Run(fmt.Sprint("n=", n), func(t *testing.T) {
			m, err := New(n)
			if err != nil {
				t.Fatal(err)
			}
			b := m.Bytes()
			if len(b) != n {
				t.Fatalf("%d bytes, want %d", len(b), n)
			}
			for i := range b {
				if b[i] != 0 {
					t.Fatalf("byte %d is %d, want 0", i, b[i])
				}
			}
			for i := range b {
				b[i] = byte(i)
			}
			if want := canMap && n >= minMapped; (m.mapping != nil) != want {
				t.Errorf("mapped = %t, want %t", m.mapping != nil, want)
			}
			m.Free(n)
			m.Free(n)
			if m.Bytes() != nil {
				t.Error("bytes after Free")
			}
		})
	}
}

func TestNewNegativeSize(t *testing.T) {
	if m, err := New(-1); err == nil {
		t.Errorf("New(-1) = %v", m)
	}
}

// TestFreePoisons reads freed memory on the Go heap, which is a bug outside this test.
func TestFreePoisons(t *testing.T) {
	if os.Getenv("TABLEROCK_REQUIRE") != "" && !Poisons() {
		t.Error("freed memory is not overwritten: .ci/run has linked the tests for it")
	}
	m, err := New(64)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	m.Free(40)
	for i, c := range b {
		if want := i < 40 && Poisons(); (c == poison) != want {
			t.Fatalf("byte %d is %#x; poison: %t", i, c, want)
		}
	}
}

func TestReuseIdleMemory(t *testing.T) {
	for _, n := range []int{64, 2 * minMapped} {
		m, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		b := m.Bytes()
		b[0], b[n-1] = 1, 2
		m.Idle(n)
		if Poisons() && (b[0] != poison || b[n-1] != poison) {
			t.Errorf("n=%d: idle memory holds %#x and %#x, want poison", n, b[0], b[n-1])
		}
		for i := range b {
			b[i] = byte(i)
		}
		for i := range b {
			if b[i] != byte(i) {
				t.Fatalf("n=%d: byte %d is %d after it was written", n, i, b[i])
			}
		}
		m.Free(n)
		m.Idle(n) // does nothing after Free
	}
}

func TestFreeConcurrently(t *testing.T) {
	m, err := New(minMapped)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { m.Free(minMapped) })
	}
	wg.Wait()
	if m.Bytes() != nil {
		t.Error("bytes after Free")
	}
}

// BenchmarkTouch writes to each page of new memory, like the first log records of a
// segment.
func BenchmarkTouch(b *testing.B) {
	for _, n := range []int{1 << 20, 64 << 20} {
		b.Run(fmt.Sprint("bytes=", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				m, err := New(n)
				if err != nil {
					b.Fatal(err)
				}
				p := m.Bytes()
				for i := 0; i < len(p); i += 4096 {
					p[i] = 1
				}
				m.Free(n)
			}
		})
	}
}
