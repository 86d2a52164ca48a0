package memory

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// TestPageSizeFollowsBudget grows pages while other requests have reserved none, some or
// all of the budget.
func TestPageSizeFollowsBudget(t *testing.T) {
	for _, c := range []struct {
		others int64
		want   int // bytes of the page
	}{
		{0, freePageBytes + (MaxPageBytes-freePageBytes+chunkBytes-1)/chunkBytes*chunkBytes},
		{MaxBytes/2 - 3*chunkBytes, freePageBytes + 3*chunkBytes},
		{MaxBytes / 2, freePageBytes},
		{MaxBytes, freePageBytes},
	} {
		var budget Budget
		budget.used.Store(c.others)
		r := NewResponse(&budget)
		r.Open()
		sent := 0
		for r.HasSpace() {
			r.Buf = append(r.Buf, make([]byte, 8<<10)...)
			sent += 8 << 10
			r.EndElement()
		}
		if sent != c.want || r.Len() != sent || budget.used.Load() != c.others+int64(sent-freePageBytes) {
			t.Errorf("with %d bytes reserved by others, a page has %d, want %d; in all %d are reserved", c.others, r.Len(), c.want, budget.used.Load())
		}
		var w bytes.Buffer
		if err := r.Send(&w); err != nil || w.Len() != sent {
			t.Errorf("sent %d bytes, want %d; error %v", w.Len(), sent, err)
		}
		if used, most := budget.used.Load()-c.others, int64(chunkBytes-freePageBytes); used > most {
			t.Errorf("after Send, %d bytes are reserved, want at most %d", used, most)
		}
		r.Free()
		if used := budget.used.Load(); used != c.others || r.Buf != nil || r.Len() != 0 {
			t.Errorf("after Free, %d bytes are reserved, want %d; the response has %d", used, c.others, r.Len())
		}
	}
}

// TestElements appends elements of several sizes to a response, sends it, takes it and clears it.
func TestElements(t *testing.T) {
	var budget Budget
	r := NewResponse(&budget)
	r.Open()
	var want []byte
	for i, n := range []int{chunkBytes, 0, chunkCap, 3 * chunkCap, 1} {
		r.Buf = append(r.Buf, bytes.Repeat([]byte{byte(i)}, n)...)
		want = append(want, bytes.Repeat([]byte{byte(i)}, n)...)
		if r.EndElement(); len(r.Buf) >= chunkBytes || r.Len() != len(want) {
			t.Fatalf("the buffer has %d bytes, the response %d; want %d", len(r.Buf), r.Len(), len(want))
		}
	}
	if got := r.Take(); !bytes.Equal(got, want) || r.Len() != 1 {
		t.Errorf("Take returned %d bytes, or others than were appended, and left %d; want %d and 1", len(got), r.Len(), len(want))
	}
	r.Buf = append(r.Buf, make([]byte, maxKeptBytes)...)
	r.EndElement()
	if r.Clear(); r.Len() != 0 {
		t.Errorf("after Clear: %d bytes", r.Len())
	}
	r.Buf = append(r.Buf, make([]byte, 2*maxKeptBytes)...)
	if r.Clear(); cap(r.Buf) > maxKeptBytes {
		t.Errorf("after Clear: a buffer of %d bytes", cap(r.Buf))
	}
}

// TestReserve reserves memory for a response and beside it, with much and with little left.
func TestReserve(t *testing.T) {
	var budget Budget
	r := NewResponse(&budget)
	r.Open()
	if err := errors.Join(r.Reserve(10), r.Hold(100), r.Send(new(bytes.Buffer))); err != nil || budget.used.Load() != 110 {
		t.Errorf("%d bytes are reserved, error %v; want 110", budget.used.Load(), err)
	}
	r.Buf = append(r.Buf, make([]byte, FreeBytes+15)...)
	if err := r.ReserveRest(); err != nil || budget.used.Load() != 115 {
		t.Errorf("%d bytes are reserved, error %v; want 115", budget.used.Load(), err)
	}
	for name, reserve := range map[string]func(int64) error{"Reserve": r.Reserve, "Hold": r.Hold} {
		if err := reserve(MaxBytes / 2); !errors.Is(err, problem.ErrBusy) || budget.used.Load() != 115 {
			t.Errorf("%s of more than there is: error %v, want %v; %d bytes are reserved", name, err, problem.ErrBusy, budget.used.Load())
		}
	}
	r.Clear()
	if r.Free(); budget.used.Load() != 0 {
		t.Errorf("after Free, %d bytes are reserved", budget.used.Load())
	}
}
