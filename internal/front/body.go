package front

import (
	"io"
	"net/http"
	"time"
)

// minRate is the minimum rate at which the body of a request must arrive.
type minRate struct {
	grace          time.Duration // before the rate applies, and the longest time without a byte
	bytesPerSecond int64         // bytes, on average after grace
	limit          time.Duration // for the whole body
}

// body is the body of a request. Each byte that arrives extends its read deadline. The time that
// the handler takes between two reads is no pause of the client.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	rate    minRate
	now     func() time.Time
	begun   bool
	start   time.Time // of the first Read, or of the request before it
	read    int64
	ended   bool
}

// limitBody returns a copy of r whose body fails with os.ErrDeadlineExceeded once it
// is slower than rate. The time before the handler first reads it does not count. The
// deadline also applies to what the handler leaves unread: http.Server reads some of that
// to reuse the connection.
//
// r itself keeps its body. http.Server examines the body to find out how much is left,
// and whether the client waits for 100 Continue. With a body of another type, it would
// request the rest before it sends an error response.
func limitBody(w http.ResponseWriter, r *http.Request, rate minRate, now func() time.Time) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	b := &body{ReadCloser: r.Body, control: http.NewResponseController(w), rate: rate, now: now, start: now()}
	if r.ProtoMajor == 1 { // HTTP/2 would end the body of a handler that has not read it yet
		b.setDeadline(rate.limit)
	}
	watched := *r
	watched.Body = b
	return &watched
}

// begin sets the deadline of a read.
func (b *body) begin() {
	if !b.begun {
		b.begun, b.start = true, b.now()
	}
	b.setDeadline(b.now().Sub(b.start) + b.rate.grace)
}

// Read reads from the body and extends the deadline for the bytes that arrived.
func (b *body) Read(p []byte) (int, error) {
	if !b.ended {
		b.begin()
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case b.ended:
	case err == io.EOF:
		b.ended = true
		// http.Server has its own deadlines for the next request, and for detecting
		// that the client has closed the connection.
		_ = b.control.SetReadDeadline(time.Time{})
	case err == nil && n > 0: // HTTP/2 would end the body while the handler does not read
		b.setDeadline(b.rate.limit)
	}
	return n, err
}

// setDeadline sets the read deadline, at most that long after the start. It ignores errors,
// because a ResponseWriter without deadlines has no connection.
func (b *body) setDeadline(most time.Duration) {
	earned := time.Duration(float64(b.read) / float64(b.rate.bytesPerSecond) * float64(time.Second))
	_ = b.control.SetReadDeadline(b.start.Add(min(b.rate.grace+earned, b.rate.limit, most)))
}

// maxDrainBytes limits the bytes of an unread body that drain discards.
const maxDrainBytes = 32 << 20

// drain sends the response and then discards what the client still sends of r's body.
// Many clients do not read a response before they have sent the whole request. Closing
// the connection while they send would reset it and lose the response. drain does not
// read the body of a client that waits for 100 Continue.
func drain(r *http.Request) {
	b, ok := r.Body.(*body)
	if !ok || b.ended || r.ProtoMajor != 1 || b.read == 0 && r.Header.Get("Expect") != "" {
		return
	}
	b.begin() // Flush makes http.Server read some of it
	if b.control.Flush() == nil {
		_, _ = io.CopyN(io.Discard, b, maxDrainBytes)
	}
}
