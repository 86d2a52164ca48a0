package batch

import (
	"net/http"
	"strconv"
)

// Writer appends the response to a batch to Buf. For each operation in order, call
// BeginOperation and append the body to Buf. Call End after the last.
type Writer struct {
	// Buf is the response so far.
	Buf []byte

	batch, changeset string
	opening          string // the start of an operation, up to its status
	open             bool
}

// Prefixes of the boundaries of a response.
const (
	batchPrefix     = "batchresponse_"
	changesetPrefix = "changesetresponse_"
)

const lineEnd = "\r\n"

// ContentType returns the Content-Type of the response whose id is batch.
func ContentType(batch string) string { return multipartMixed + "; boundary=" + batchPrefix + batch }

// NewWriter begins a response after buf. The boundaries contain the ids batch and
// changeset. If changeset is "", the response has no changeset.
func NewWriter(buf []byte, batch, changeset string) *Writer {
	w := &Writer{Buf: buf, batch: batchPrefix + batch}
	boundary := w.batch
	if changeset != "" {
		w.changeset = changesetPrefix + changeset
		boundary = w.changeset
		w.line(dashes, w.batch)
		w.line("Content-Type: "+multipartMixed+"; boundary=", w.changeset)
		w.line()
	}
	w.opening = dashes + boundary + lineEnd + "Content-Type: " + operationType + lineEnd + "Content-Transfer-Encoding: binary" + lineEnd + lineEnd + "HTTP/1.1 "
	return w
}

// BeginOperation begins the response to an operation. No value in header contains a
// line end.
func (w *Writer) BeginOperation(status int, header ...Field) {
	w.endOperation()
	w.open = true
	b := append(w.Buf, w.opening...)
	b = append(strconv.AppendInt(b, int64(status), 10), ' ')
	b = append(append(b, http.StatusText(status)...), lineEnd...)
	for i := range header {
		f := &header[i]
		b = append(append(b, f.Name...), ": "...)
		b = append(append(b, f.Value...), lineEnd...)
	}
	w.Buf = append(b, lineEnd...)
}

// End completes the response and returns it.
func (w *Writer) End() []byte {
	w.endOperation()
	if w.changeset != "" {
		w.line(dashes, w.changeset, dashes)
	}
	w.line(dashes, w.batch, dashes)
	return w.Buf
}

func (w *Writer) endOperation() {
	if w.open {
		w.line()
	}
	w.open = false
}

func (w *Writer) line(fields ...string) {
	for _, s := range fields {
		w.Buf = append(w.Buf, s...)
	}
	w.Buf = append(w.Buf, lineEnd...)
}
