package front

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// countedPipe is one end of a pipe that counts how often its deadlines are set.
type countedPipe struct {
	net.Conn
	reads, writes int
}

func (c *countedPipe) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *countedPipe) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

// longAgo is a time in 1970, in seconds from the start of a bubble. net/http sets such a
// deadline to abort a read.
const longAgo = -946_684_799

// TestDeadlines sets several deadlines, then reads or writes. The call must end when the
// last deadline expires, or when the peer writes or reads.
func TestDeadlines(t *testing.T) {
	const never = -1
	for _, c := range []struct {
		name      string
		deadlines []time.Duration // from the start, in order; 0 clears the deadline
		used      bool            // a call completes after the first deadline was set
		meets     time.Duration   // when the peer writes or reads
		want      time.Duration   // when the call times out, or never
		applied   int             // deadlines set on the connection
	}{
		{"none", nil, false, 5, never, 0},
		{"one", []time.Duration{3}, false, 5, 3, 1},
		{"one that does not expire", []time.Duration{8}, false, 5, never, 1},
		{"cleared", []time.Duration{3, 0}, false, 5, never, 0},
		{"cleared after use", []time.Duration{3, 0}, true, 5, never, 2},
		{"later after use", []time.Duration{3, 4}, true, 5, 4, 2},
		{"much later after use", []time.Duration{6, 60}, true, 5, never, 1},
		{"earlier after use", []time.Duration{60, 4}, true, 5, 4, 2},
		{"earlier and later again", []time.Duration{6, 2, 0, 4, 60}, true, 5, never, 1},
		{"in the past", []time.Duration{-60}, false, 5, 0, 1},
		{"aborted", []time.Duration{3, longAgo}, true, 5, 0, 1},
	} {
		for _, direction := range []string{"read", "write"} {
			t.Run(direction+" "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					near, far := net.Pipe()
					inner := &countedPipe{Conn: near}
					conn := newLazyConn(inner)
					set, wait, meet, applied := conn.SetReadDeadline, conn.Read, far.Write, &inner.reads
					if direction == "write" {
						set, wait, meet, applied = conn.SetWriteDeadline, conn.Write, far.Read, &inner.writes
					}
					var peers sync.WaitGroup
					peer := func(after time.Duration) {
						peers.Go(func() {
							<-time.After(after * time.Second)
							_, _ = meet(make([]byte, 1))
						})
					}
					start := time.Now()
					for i, d := range c.deadlines {
						at := start.Add(d * time.Second)
						if d == 0 {
							at = time.Time{}
						}
						if err := set(at); err != nil {
							t.Fatal(err)
						}
						if i == 0 && c.used {
							peer(0)
							if n, err := wait(make([]byte, 1)); n != 1 || err != nil {
								t.Fatal(n, err)
							}
						}
					}
					peer(c.meets)
					n, err := wait(make([]byte, 1))
					took := time.Since(start) / time.Second
					met := n == 1 && err == nil && took == c.meets
					timedOut := n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && took == c.want
					if c.want == never && !met || c.want != never && !timedOut {
						t.Errorf("%d bytes, %v after %d s; want data at %d s, or a timeout at %d s", n, err, took, c.meets, c.want)
					}
					if *applied != c.applied {
						t.Errorf("%d deadlines were set on the connection, want %d", *applied, c.applied)
					}
					_ = near.Close()
					_ = far.Close()
					peers.Wait()
				})
			})
		}
	}
}

// TestDeadlineWhileWaiting changes deadlines during a read and a write.
func TestDeadlineWhileWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		before, then time.Duration
		want         time.Duration
	}{
		"sooner":       {60, 2, 2},
		"later":        {3, 7, 7},
		"at once":      {0, longAgo, 1},
		"in the past":  {60, -60, 1},
		"from none":    {0, 4, 4},
		"from expired": {1, 9, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				conn := newLazyConn(near)
				start := time.Now()
				at := func(d time.Duration) time.Time {
					if d == 0 {
						return time.Time{}
					}
					return start.Add(d * time.Second)
				}
				if err := conn.SetDeadline(at(c.before)); err != nil {
					t.Fatal(err)
				}
				took := make(chan time.Duration, 2)
				wait := func(what func([]byte) (int, error)) {
					if n, err := what(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%d bytes, %v", n, err)
					}
					took <- time.Since(start)
				}
				go wait(conn.Read)
				go wait(conn.Write)
				<-time.After(time.Second)
				synctest.Wait()
				if err := conn.SetDeadline(at(c.then)); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if got := <-took; got != c.want*time.Second {
						t.Errorf("the call took %v, want %d s", got, c.want)
					}
				}
				_ = near.Close()
				_ = far.Close()
			})
		})
	}
}

// TestWriteRetry writes past a deadline that was extended. The retry must not repeat
// bytes.
func TestWriteRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		conn := newLazyConn(near)
		start := time.Now()
		read := make(chan []byte, 1)
		go func() {
			b := make([]byte, 3)
			_, _ = io.ReadFull(far, b)
			<-time.After(5 * time.Second)
			rest, _ := io.ReadAll(far)
			read <- append(b, rest...)
		}()
		for _, at := range []time.Duration{3, 60} {
			if err := conn.SetWriteDeadline(start.Add(at * time.Second)); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Write([]byte{byte(at)}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if n, err := conn.Write([]byte("abcdef")); n != 6 || err != nil {
			t.Fatal(n, err)
		}
		_ = near.Close()
		if got := <-read; !slices.Equal(got, []byte("\x03\x3cabcdef")) {
			t.Errorf("read %q", got)
		}
		_ = far.Close()
	})
}

// TestRequestsSetFewDeadlines serves many requests on one connection and counts the
// deadlines set on it.
func TestRequestsSetFewDeadlines(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "yes") }
	synctest.Test(t, func(t *testing.T) {
		p := newPipeListener()
		s := New(p, http.HandlerFunc(h), Options{})
		go func() { _ = s.Serve() }()
		near, far := net.Pipe()
		inner := &countedPipe{Conn: far}
		p.calls <- inner
		const requests = 100
		ask := func() {
			go func() { _, _ = io.WriteString(near, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") }()
			if _, err := io.ReadAtLeast(near, make([]byte, 4<<10), 3); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range requests {
			ask()
		}
		// http.Server ends its background read with a deadline, and the read of the
		// next request needs another.
		if inner.reads > 2*requests+2 || inner.writes > 2 {
			t.Errorf("%d deadlines for reads and %d for writes in %d requests", inner.reads, inner.writes, requests)
		}
		_ = near.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLazyDeadlinesAreEquivalent runs random scripts on a plain connection and on a
// lazyConn. Every call must end with the same result at the same time.
func TestLazyDeadlinesAreEquivalent(t *testing.T) {
	const seed, scripts = 41, 500
	for script := range uint64(scripts) {
		read := script%2 == 0
		var ends [2][]string
		for i := range ends {
			synctest.Test(t, func(t *testing.T) {
				ends[i] = runDeadlineScript(rand.New(rand.NewPCG(seed, script)), read, i == 1)
			})
		}
		if !slices.Equal(ends[0], ends[1]) {
			t.Fatalf("seed %d, script %d: the calls end with\n%q, want\n%q\nrerun: go test ./internal/front -run '^TestLazyDeadlinesAreEquivalent$'",
				seed, script, ends[1], ends[0])
		}
	}
}

// runDeadlineScript changes a deadline before and during calls, some of which a peer
// ends, and returns the result of each. No two events happen at the same time.
func runDeadlineScript(r *rand.Rand, read, lazy bool) (ends []string) {
	near, far := net.Pipe()
	conn := near
	if lazy {
		p := newLazyConn(near)
		conn = &p
	}
	set, wait, meet := conn.SetReadDeadline, conn.Read, far.Write
	if !read {
		set, wait, meet = conn.SetWriteDeadline, conn.Write, far.Read
	}
	start := time.Now()
	pause := func(most int, beside time.Duration) <-chan time.Time {
		return time.After(time.Duration(r.IntN(most))*time.Second + beside*time.Millisecond)
	}
	change := func(beside time.Duration) {
		at := time.Now().Add(time.Duration(r.IntN(12)-2)*time.Second + beside*time.Millisecond)
		switch r.IntN(8) {
		case 0:
			at = time.Time{}
		case 1:
			at = time.Unix(1, 0)
		}
		_ = set(at)
	}
	for range 12 {
		for range r.IntN(3) {
			change(100)
		}
		<-pause(3, 250)
		done, met := make(chan struct{}), make(chan struct{})
		comes := pause(15, 512)
		go func() {
			defer close(met)
			select {
			case <-done:
			case <-comes:
				_ = far.SetDeadline(time.Now().Add(time.Millisecond))
				_, _ = meet(make([]byte, 1))
			}
		}()
		go func() {
			defer close(done)
			n, err := wait(make([]byte, 2))
			ends = append(ends, fmt.Sprint(n, errors.Is(err, os.ErrDeadlineExceeded), time.Since(start)))
		}()
		for range r.IntN(3) {
			select {
			case <-done:
			case <-pause(4, 33):
				change(61)
			}
		}
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = set(time.Unix(1, 0))
			<-done
		}
		<-met
		_ = far.SetDeadline(time.Time{})
	}
	_, _ = near.Close(), far.Close()
	return ends
}
