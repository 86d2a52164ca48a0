package batch

import (
	"net/http"
	"strconv"
)

// Writer appends the answer to a batch to Buf. The answers to its operations
// come in their order: Part for each, then its body, appended to Buf by the
// caller; End after the last.
type Writer struct {
	// Buf is the answer so far, and may be any memory to begin with.
	Buf []byte

	batch, changeset string
	opening          string // of a part, up to its status
	open             bool
}

// What the boundaries of an answer begin with.
const (
	batchPrefix     = "batchresponse_"
	changesetPrefix = "changesetresponse_"
)

const lineEnd = "\r\n"

// ContentType returns the type of an answer with that id.
func ContentType(batch string) string { return multipartMixed + "; boundary=" + batchPrefix + batch }

// NewWriter begins an answer behind buf. The ids make the boundaries; without
// one for a changeset the answer has none.
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

// BeginOperation begins the answer to an operation, whose header is header; no value has a
// line end.
func (w *Writer) BeginOperation(status int, header ...Field) {
	w.endPart()
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

// End completes the answer and returns it.
func (w *Writer) End() []byte {
	w.endPart()
	if w.changeset != "" {
		w.line(dashes, w.changeset, dashes)
	}
	w.line(dashes, w.batch, dashes)
	return w.Buf
}

func (w *Writer) endPart() {
	if w.open {
		w.line()
	}
	w.open = false
}

func (w *Writer) line(parts ...string) {
	for _, s := range parts {
		w.Buf = append(w.Buf, s...)
	}
	w.Buf = append(w.Buf, lineEnd...)
}
