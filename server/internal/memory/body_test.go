package memory

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// broken is a reader that fails after its first bytes.
type broken struct{ first *strings.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.first.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBodyFollowsContent reads bodies that are as long as announced, and shorter ones, and checks how much memory was reserved.
func TestBodyFollowsContent(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for _, c := range []struct {
		name      string
		body      io.Reader
		announced int64
		bytes     int
		reserved  int64 // at most
		err       error
	}{
		{"whole", strings.NewReader(text), int64(len(text)), len(text), int64(len(text)) + 1, nil},
		{"in chunks", strings.NewReader(text), MaxBodyBytes, len(text), 5 * int64(len(text)), nil},
		{"small", strings.NewReader(text[:100]), 100, 100, 101, nil},
		{"empty", strings.NewReader(""), 0, 0, 1, nil},
		{"one byte of 4 MiB", broken{strings.NewReader("x")}, MaxBodyBytes, 0, firstBodyBytes + 1, io.ErrUnexpectedEOF},
		{"the first bytes of 4 MiB", broken{strings.NewReader(text)}, MaxBodyBytes, 0, 5 * int64(len(text)), io.ErrUnexpectedEOF},
		{"the largest body", bytes.NewReader(make([]byte, MaxBodyBytes)), MaxBodyBytes, MaxBodyBytes, MaxBodyBytes + 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var budget Budget
			b := NewBody(&budget)
			if err := b.fill(httptest.NewRecorder(), io.NopCloser(c.body), c.announced); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if c.err == nil && len(b.Bytes) != c.bytes {
				t.Errorf("read %d bytes, want %d", len(b.Bytes), c.bytes)
			}
			if used := budget.used.Load(); used > c.reserved || used != b.reserved {
				t.Errorf("%d bytes are reserved, %d by the body, want at most %d", used, b.reserved, c.reserved)
			}
		})
	}
}

// TestBudget exhausts the budget of pages, then that of bodies, and checks that a body
// is refused.
func TestBudget(t *testing.T) {
	for limit, most := range map[int64]int64{0: MaxBytes, 16 << 20: 16 << 20} {
		b := Budget{Limit: limit}
		for b.reservePage(chunkBytes) {
			continue
		}
		if b.used.Load() != most/2 || !b.ReserveBody(1) {
			t.Errorf("pages reserved %d bytes, want %d, and a body to get more", b.used.Load(), most/2)
		}
		b.Release(1)
		for b.ReserveBody(MaxBodyBytes) {
			continue
		}
		if b.used.Load() != most || b.ReserveBody(1) {
			t.Errorf("%d bytes are reserved, want %d", b.used.Load(), most)
		}
		body := NewBody(&b)
		if err := body.Read(httptest.NewRecorder(), io.NopCloser(strings.NewReader("text")), 4); !errors.Is(err, problem.ErrBusy) {
			t.Errorf("error %v, want %v", err, problem.ErrBusy)
		}
	}
}

// TestReusedBodies reads bodies into the memory of earlier ones: the body reserves
// that memory, and a small body does not take large memory.
func TestReusedBodies(t *testing.T) {
	for _, c := range []struct {
		kept, announced, others int64
		reserved                int64
	}{
		{100, 100, 0, 100},
		{firstBodyBytes, 10, 0, firstBodyBytes},
		{100_000, 99_999, 0, 100_000},
		{100_000, 30_000, 0, 100_000},
		{100_000, 20_000, 0, 0},
		{maxKeptBytes, MaxBodyBytes, 0, maxKeptBytes},
		{100_000, 99_999, MaxBytes, 0},
	} {
		var budget Budget
		budget.used.Store(c.others)
		b := NewBody(&budget)
		b.owner, b.Bytes = new([]byte), make([]byte, 0, c.kept)
		_ = b.fill(httptest.NewRecorder(), io.NopCloser(broken{strings.NewReader("")}), c.announced) // fails at the first byte
		used := budget.used.Load() - c.others
		if used != b.reserved || used != int64(cap(b.Bytes)) || used < c.reserved || c.reserved == 0 && used > firstBodyBytes+1 {
			t.Errorf("%d bytes kept for a body of %d, with %d reserved by others: reserved %d, %d by the body, for %d; want %d",
				c.kept, c.announced, c.others, used, b.reserved, cap(b.Bytes), c.reserved)
		}
		b.Free()
		if used := budget.used.Load(); used != c.others {
			t.Errorf("after Free, %d bytes are reserved, want %d", used, c.others)
		}
	}
}
