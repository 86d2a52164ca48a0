package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// half is a body that stops with an error after what came of it.
type half struct{ came *strings.Reader }

func (h half) Read(p []byte) (int, error) {
	n, err := h.came.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBodyTakesMemoryAsItComes reads bodies whose announced length says nothing
// about what comes.
func TestBodyTakesMemoryAsItComes(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for _, c := range []struct {
		name      string
		body      io.Reader
		announced int64
		held      int64 // at most
		err       error
	}{
		{"whole", strings.NewReader(text), int64(len(text)), int64(len(text)) + 1, nil},
		{"in chunks", strings.NewReader(text), -1, 5 * int64(len(text)), nil},
		{"small", strings.NewReader(text[:100]), 100, 101, nil},
		{"empty", strings.NewReader(""), 0, 1, nil},
		{"a byte of much", half{strings.NewReader("x")}, maxBodyBytes, firstBodyBytes + 1, errProcessing},
		{"a part of much", half{strings.NewReader(text)}, maxBodyBytes, 5 * int64(len(text)), errProcessing},
		{"all there may be", bytes.NewReader(make([]byte, maxBodyBytes)), maxBodyBytes, maxBodyBytes + 1, nil},
		{"too much", bytes.NewReader(make([]byte, maxBodyBytes+1)), maxBodyBytes + 1, 0, errBodyTooLarge},
		{"too much in chunks", bytes.NewReader(make([]byte, maxBodyBytes+1)), -1, maxBodyBytes + 1, errBodyTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(Server)
			x := newExchange(s)
			x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", c.body)
			x.r.ContentLength = c.announced
			if err := x.readBody(); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if c.err == nil && c.announced > 0 && int64(len(x.body)) != c.announced {
				t.Errorf("%d bytes are read, want %d", len(x.body), c.announced)
			}
			if held := s.inFlight.held.Load(); held > c.held || held != x.held {
				t.Errorf("%d bytes are held, %d by the request, want at most %d", held, x.held, c.held)
			}
		})
	}
}

// TestPagesTakeWhatIsLeft gathers pages while others hold much, little or all.
func TestPagesTakeWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		held int64
		want int // bytes of the page
	}{
		{0, freePageBytes + (maxPageBytes-freePageBytes+chunkBytes-1)/chunkBytes*chunkBytes},
		{maxPagesBytes - 3*chunkBytes, freePageBytes + 3*chunkBytes},
		{maxPagesBytes, freePageBytes},
		{maxInFlightBytes, freePageBytes},
	} {
		s := new(Server)
		s.inFlight.held.Store(c.held)
		x := newExchange(s)
		limit := freePageBytes
		for x.morePage(&limit) {
			continue
		}
		if limit != c.want || s.inFlight.held.Load() != c.held+int64(limit-freePageBytes) {
			t.Errorf("with %d bytes held, a page has %d, want %d; then %d are held", c.held, limit, c.want, s.inFlight.held.Load())
		}
		w := httptest.NewRecorder()
		x.w, x.r = w, httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		for range x.paged / chunkBytes {
			x.buf = x.pages.put(append(x.buf, make([]byte, chunkBytes)...))
		}
		if err := x.send(http.StatusOK, ""); err != nil || w.Body.Len() != limit-freePageBytes {
			t.Errorf("%d bytes are sent, want %d; %v", w.Body.Len(), limit-freePageBytes, err)
		}
		if held := s.inFlight.held.Load(); held != c.held {
			t.Errorf("after all is sent, %d bytes are held, want %d", held, c.held)
		}
		x.end()
		if held := s.inFlight.held.Load(); held != c.held {
			t.Errorf("at the end, %d bytes are held, want %d", held, c.held)
		}
	}
}

// TestBusy refuses bodies when others hold what there is, and great pages before
// that.
func TestBusy(t *testing.T) {
	var g gauge
	for g.acquirePage(chunkBytes) {
		continue
	}
	if g.held.Load() != maxPagesBytes || !g.acquire(1) {
		t.Errorf("pages hold %d bytes, want %d and room for bodies", g.held.Load(), maxPagesBytes)
	}
	g.release(1)
	for g.acquire(maxBodyBytes) {
		continue
	}
	if g.held.Load() != maxInFlightBytes || g.acquire(1) {
		t.Errorf("all hold %d bytes, want %d", g.held.Load(), maxInFlightBytes)
	}
	s := new(Server)
	s.inFlight.held.Store(maxInFlightBytes)
	x := newExchange(s)
	x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("text"))
	if err := x.readBody(); !errors.Is(err, errBusy) {
		t.Errorf("error %v, want %v", err, errBusy)
	}
}
