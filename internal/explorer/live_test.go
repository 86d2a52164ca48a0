package explorer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer"
)

// stream returns the response of GET api/path before its body is read.
func (b *browser) stream(ctx context.Context, path string) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/ui/api/"+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Cookie", b.cookie)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestEvents reads two events of a stream, which ends with its session.
func TestEvents(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	stream := b.stream(t.Context(), "events")
	if stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is %s %v", stream.Status, stream.Header)
	}
	lines := bufio.NewReader(stream.Body)
	var last explorer.Live
	for events := 0; events < 2; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var live explorer.Live
		if err := json.Unmarshal([]byte(data), &live); err != nil {
			t.Fatal(err)
		}
		if live.At.IsZero() || live.Engines == nil || live.Last == nil || live.Slow == nil {
			t.Errorf("event %d is %s", events, data)
		}
		last = live
		events++
	}
	if last.History != nil {
		t.Error("the second event has the history again")
	}
	b.want(http.StatusOK, nil, "logout", object{})
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the stream of a session that ended: %v", err)
	}
}

// TestEventsOfRemovedKey ends the stream of a session whose key is removed.
func TestEventsOfRemovedKey(t *testing.T) {
	s := newSite(t)
	b := s.login(map[string]string{"account": "first", "key": key})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream := b.stream(ctx, "events")
	lines := bufio.NewReader(stream.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "event: live\n" {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	s.remove(true)
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the stream after the key was removed: %v", err)
	}
}

// TestManyStreams refuses streams above the limit, which bounds what they cost.
func TestManyStreams(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	refused := 0
	for range 70 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/ui/api/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", b.cookie)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d of 70 streams are refused", refused)
	}
}
