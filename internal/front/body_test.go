package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a ResponseWriter that records read deadlines.
type recorder struct {
	http.ResponseWriter
	deadlines []time.Time
}

func (r *recorder) SetReadDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

// chunkReader is a body that returns one chunk per Read.
type chunkReader struct{ chunks [][]byte }

func (p *chunkReader) Read(dst []byte) (int, error) {
	if len(p.chunks) == 0 {
		return 0, io.EOF
	}
	n := copy(dst, p.chunks[0])
	p.chunks = p.chunks[1:]
	return n, nil
}

func TestBodyExtendsDeadline(t *testing.T) {
	start := time.Unix(1000, 0)
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	body := &chunkReader{[][]byte{make([]byte, 100), make([]byte, 400), make([]byte, 4000)}}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r = limitBody(w, r, minRate{grace: 5 * time.Second, bytesPerSecond: 100, limit: 30 * time.Second}, func() time.Time { return start })
	if got, err := io.ReadAll(r.Body); err != nil || len(got) == 0 {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	first := w.deadlines[1].Sub(start) // the one before it was for a handler that does not read
	last := w.deadlines[len(w.deadlines)-3].Sub(start)
	if second := w.deadlines[2].Sub(start); first != 5*time.Second || second != 6*time.Second || last > 30*time.Second {
		t.Errorf("deadlines %v, %v ... %v after the start; want 5s, then 6s for 100 bytes at 100 B/s, and never more than 30s", first, second, last)
	}
	if end := w.deadlines[len(w.deadlines)-1]; !end.IsZero() {
		t.Errorf("deadline %v after the end of the body, want none", end)
	}
}

// TestNoBody checks that requests without a body get no deadline.
func TestNoBody(t *testing.T) {
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	limitBody(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), minRate{}, nil)
	if len(w.deadlines) != 0 {
		t.Errorf("deadlines %v", w.deadlines)
	}
}

// TestBodyWithoutDeadlines uses a ResponseWriter that does not support deadlines.
func TestBodyWithoutDeadlines(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte("text")))
	r = limitBody(httptest.NewRecorder(), r, minRate{bytesPerSecond: 1}, func() time.Time { return time.Time{} })
	got, err := io.ReadAll(r.Body)
	if string(got) != "text" || err != nil || errors.Join(r.Body.Close()) != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLateHandlerHTTP2 reads a body of HTTP/2 later than its grace.
func TestLateHandlerHTTP2(t *testing.T) {
	const size = 4 << 20 // more than http.Server receives before the handler reads
	l, certificates, _ := listenHTTP2(t)
	l.Close()
	certificates.SessionTicketsDisabled = true // the server would wait until the client reads its ticket
	synctest.Test(t, func(t *testing.T) {
		p := newPipeListener()
		s := &http.Server{TLSConfig: certificates, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = limitBody(w, r, bodyRate, time.Now)
			<-time.After(2 * bodyRate.grace)
			if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil || r.ProtoMajor != 2 {
				t.Errorf("%s: %d bytes, %v; want %d", r.Proto, n, err, size)
			}
		})}
		served := make(chan error)
		go func() { served <- s.ServeTLS(p, "", "") }()
		client := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true,
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn := tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
				return conn, conn.HandshakeContext(ctx)
			},
		}}
		response, err := client.Post("https://h/", "", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		client.CloseIdleConnections()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
}
