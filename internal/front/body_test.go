package front

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// recorder is a writer that notes the deadlines set on its connection.
type recorder struct {
	http.ResponseWriter
	deadlines []time.Time
}

func (r *recorder) SetReadDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

// pieces is a body that comes in parts.
type pieces struct{ parts [][]byte }

func (p *pieces) Read(dst []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(dst, p.parts[0])
	p.parts = p.parts[1:]
	return n, nil
}

func TestBodyEarnsItsTime(t *testing.T) {
	start := time.Unix(1000, 0)
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	body := &pieces{[][]byte{make([]byte, 100), make([]byte, 400), make([]byte, 4000)}}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r = watchBody(w, r, pace{grace: 5 * time.Second, perSecond: 100, most: 30 * time.Second}, func() time.Time { return start })
	if got, err := io.ReadAll(r.Body); err != nil || len(got) == 0 {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	first := w.deadlines[0].Sub(start)
	last := w.deadlines[len(w.deadlines)-2].Sub(start)
	if second := w.deadlines[1].Sub(start); first != 5*time.Second || second != 6*time.Second || last > 30*time.Second {
		t.Errorf("deadlines %v, %v ... %v after the start; want 5s, then 6s for 100 bytes at 100 a second, and never more than 30s", first, second, last)
	}
	if end := w.deadlines[len(w.deadlines)-1]; !end.IsZero() {
		t.Errorf("after the body a deadline of %v stands, want none", end)
	}
}

// TestNoBody leaves requests without a body alone.
func TestNoBody(t *testing.T) {
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	watchBody(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), pace{}, nil)
	if len(w.deadlines) != 0 {
		t.Errorf("deadlines %v", w.deadlines)
	}
}

// TestBodyWithoutDeadlines reads through writers that are no connection's.
func TestBodyWithoutDeadlines(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte("text")))
	r = watchBody(httptest.NewRecorder(), r, pace{perSecond: 1}, func() time.Time { return time.Time{} })
	got, err := io.ReadAll(r.Body)
	if string(got) != "text" || err != nil || errors.Join(r.Body.Close()) != nil {
		t.Errorf("%q, %v", got, err)
	}
}
