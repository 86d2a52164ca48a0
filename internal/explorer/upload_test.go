package explorer

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/sessions"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/tempfile"
)

// newExchange returns a request of a session by link, to a handler without accounts.
func newExchange(t *testing.T) *exchange {
	t.Helper()
	h, err := New(Options{Accounts: func() []Account { return nil }, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	s := &session{Kind: sessions.ByLink}
	h.sessions.Begin(s)
	return &exchange{h: h, r: httptest.NewRequest("POST", "/", nil), s: s}
}

// TestIdleTimeBegins sets the timer between two chunks before another request can find the
// job.
func TestIdleTimeBegins(t *testing.T) {
	x, up := newExchange(t), &upload{}
	j, err := x.start(Job{Kind: "import"}, sharedkey.Insert, up, func(context.Context, *job) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if up.idle == nil {
		t.Error("a job has no timer")
	}
	<-j.ended
}

// TestIdleTimeEnds stops the timer between two chunks when the file is complete, because it
// cancels the job.
func TestIdleTimeEnds(t *testing.T) {
	u := &upload{end: func(error) {}, complete: make(chan struct{}), idle: time.AfterFunc(time.Hour, func() {})}
	u.finish()
	if u.idle.Stop() {
		t.Error("the timer of a complete file runs")
	}
}

// fullSpool is the spool of an import on a full disk. Its Write returns after the import ended.
type fullSpool struct {
	failed chan error
	ended  chan struct{}
}

func (s *fullSpool) Write([]byte) (int, error) {
	s.failed <- tempfile.ErrFull
	<-s.ended
	return 0, tempfile.ErrFull
}

// TestFullDiskIsReported requires that the chunk that finds the disk full gets that reason, even
// if the import has ended before the response.
func TestFullDiskIsReported(t *testing.T) {
	x, spool := newExchange(t), &fullSpool{failed: make(chan error)}
	j, err := x.start(Job{Kind: "import"}, sharedkey.Insert, &upload{w: spool, size: 10}, func(context.Context, *job) error { return <-spool.failed })
	if err != nil {
		t.Fatal(err)
	}
	spool.ended = j.ended
	x.w, x.r = httptest.NewRecorder(), httptest.NewRequest("POST", "/?offset=0&id="+j.id, strings.NewReader("0123456789"))
	_, err = x.importData()
	if status, f := x.h.failureOf(err); status != http.StatusInsufficientStorage || f.Code != "NoSpace" {
		t.Errorf("the chunk gets %d %+v, error %v", status, f, err)
	}
}
