package front

import (
	"io"
	"net/http"
	"time"
)

// pace says how fast the body of a request has to arrive.
type pace struct {
	grace     time.Duration // before any of it is asked for
	perSecond int64         // bytes, on the average after grace
	most      time.Duration // altogether
}

// body is the body of a request, read against a deadline that what arrived moves.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	pace    pace
	now     func() time.Time
	start   time.Time
	read    int64
	over    bool
}

// watchBody returns r with a body that fails with os.ErrDeadlineExceeded once it is
// slower than p. What the handler leaves unread is bounded as well: the
// http.Server reads some of it to use the connection again, and would wait for it.
//
// r itself keeps its body. The http.Server looks at it to see how much is left,
// and whether the client waits for leave to send it: of a body that it does not
// know, it would ask for the rest before it lets a refusal out.
func watchBody(w http.ResponseWriter, r *http.Request, p pace, now func() time.Time) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	b := &body{ReadCloser: r.Body, control: http.NewResponseController(w), pace: p, now: now, start: now()}
	b.renew()
	watched := *r
	watched.Body = b
	return &watched
}

// Read reads, and gives the rest of the body the time that what came has earned.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case b.over:
	case err == io.EOF:
		b.over = true
		// What follows is the next request, for which the server has deadlines
		// of its own, and the watch for a client that goes away.
		_ = b.control.SetReadDeadline(time.Time{})
	case err == nil && n > 0:
		b.renew()
	}
	return n, err
}

// renew sets the deadline. A writer without deadlines belongs to no network.
func (b *body) renew() {
	earned := time.Duration(float64(b.read) / float64(b.pace.perSecond) * float64(time.Second))
	_ = b.control.SetReadDeadline(b.start.Add(min(b.pace.grace+earned, b.pace.most)))
}

// maxDrained is how much of a body is taken that nobody wants.
const maxDrained = 32 << 20

// drain sends the answer and then takes what the client still sends of r's body. Many
// clients read no answer before they have sent all, and a connection that is closed
// while they send is reset, which loses the answer with it. A client that waits for
// leave to send gets none.
func drain(r *http.Request) {
	b, ok := r.Body.(*body)
	if !ok || b.over || r.ProtoMajor != 1 || b.read == 0 && r.Header.Get("Expect") != "" {
		return
	}
	if b.control.Flush() == nil {
		_, _ = io.CopyN(io.Discard, b, maxDrained)
	}
}
