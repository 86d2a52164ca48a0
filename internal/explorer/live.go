package explorer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/livestate"
)

const (
	eventTime  = time.Second // between two events, and the age of a state that is sent again
	sampleTime = 5 * time.Second
	maxSamples = 60 // five minutes
	maxStreams = 64
	maxLast    = 50
	maxSlow    = 20
)

// live collects the state of the server. Without a stream it takes one sample of counters
// each sampleTime.
type live struct {
	h      *Handler
	stop   chan struct{}
	closed sync.Once
	ended  sync.WaitGroup

	mu      sync.Mutex
	streams int      // +checklocks:mu
	history []Sample // oldest first; +checklocks:mu
	state   Live     // of state.At; +checklocks:mu
}

func newLive(h *Handler) *live {
	l := &live{h: h, stop: make(chan struct{})}
	l.ended.Go(func() {
		tick := time.NewTicker(sampleTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.sample()
			case <-l.stop:
				return
			}
		}
	})
	return l
}

func (l *live) close() {
	l.closed.Do(func() { close(l.stop) })
	l.ended.Wait()
}

// sample adds a point to the history.
func (l *live) sample() {
	s := Sample{At: l.h.o.Now(), Sums: map[string]float64{}}
	if l.h.o.Sums != nil {
		s.Sums = l.h.o.Sums()
	}
	if l.h.o.Requests != nil {
		s.Requests, _, _ = l.h.o.Requests(0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.history) == maxSamples {
		l.history = slices.Delete(l.history, 0, 1)
	}
	l.history = append(l.history, s)
}

// now returns the state, at most eventTime old, so that many streams cost as much as one.
func (l *live) now() Live {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.h.o.Now()
	if now.Sub(l.state.At) < eventTime*9/10 {
		return l.state
	}
	s := Live{At: now, Engines: []livestate.Engine{}, Last: []livestate.Request{}, Slow: []livestate.Shape{}}
	for _, a := range l.h.o.Accounts() {
		if a.Engine == nil {
			continue
		}
		if e, err := a.Engine(); err == nil {
			s.Engines = append(s.Engines, e)
		}
	}
	if l.h.o.Cache != nil {
		s.Cache = l.h.o.Cache()
	}
	if l.h.o.Pool != nil {
		s.Pool = l.h.o.Pool()
	}
	if l.h.o.Requests != nil {
		s.Requests, s.Last, s.Slow = l.h.o.Requests(256)
	}
	l.state = s
	return s
}

// of returns the state that a session may see. A shared access signature allows nothing of
// it.
func (l *live) of(x *exchange) (Live, error) {
	if x.s.SAS != "" {
		return Live{}, Refuse(http.StatusForbidden, "AuthorizationPermissionMismatch", "A shared access signature does not allow to see the server.")
	}
	s := l.now()
	hidden := func(account string) bool { return x.s.Account != "" && x.s.Account != account }
	s.Engines = slices.DeleteFunc(slices.Clone(s.Engines), func(e livestate.Engine) bool { return hidden(e.Account) })
	s.Last = slices.DeleteFunc(slices.Clone(s.Last), func(q livestate.Request) bool { return hidden(q.Account) })
	s.Slow = slices.DeleteFunc(slices.Clone(s.Slow), func(q livestate.Shape) bool { return hidden(q.Account) })
	s.Last, s.Slow = s.Last[:min(len(s.Last), maxLast)], s.Slow[:min(len(s.Slow), maxSlow)]
	for i := range s.Slow {
		if e, err := filter.Parse(s.Slow[i].Example); err == nil {
			s.Slow[i].Scan, s.Slow[i].Warning, s.Slow[i].Cure = scanOf(e)
		}
	}
	return s, nil
}

func (x *exchange) liveState() (any, error) { return x.h.live.of(x) }

// join counts a stream, and returns the history for its first event.
func (l *live) join() ([]Sample, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == maxStreams {
		return nil, Refuse(http.StatusTooManyRequests, "TooManyStreams", "Too many pages show the server. Close some.")
	}
	l.streams++
	return slices.Clone(l.history), nil
}

func (l *live) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams--
}

func (x *exchange) events() (any, error) {
	state, err := x.h.live.of(x)
	if err != nil {
		return nil, err
	}
	if state.History, err = x.h.live.join(); err != nil {
		return nil, err
	}
	defer x.h.live.leave()
	x.w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(x.w)
	_ = c.SetReadDeadline(time.Time{}) // the limit for a request would end the stream
	tick := time.NewTicker(eventTime)
	defer tick.Stop()
	for {
		text, err := json.Marshal(state)
		if err == nil {
			_ = c.SetWriteDeadline(x.h.o.Now().Add(10 * eventTime)) // for a browser that does not read
			_, err = fmt.Fprintf(x.w, "event: live\ndata: %s\n\n", text)
		}
		if err != nil || c.Flush() != nil {
			return answered{}, nil // the browser is gone
		}
		select {
		case <-tick.C:
		case <-x.r.Context().Done():
			return answered{}, nil
		case <-x.s.Ctx.Done():
			return answered{}, nil
		case <-x.h.live.stop:
			return answered{}, nil
		}
		if x.s.Account != "" && x.h.verify(x.r, x.s) != nil {
			return answered{}, nil // its key was removed
		}
		if state, err = x.h.live.of(x); err != nil {
			return answered{}, nil
		}
	}
}
