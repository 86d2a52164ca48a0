package multipart

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
	if changeset == "" {
		return w
	}
	w.changeset = changesetPrefix + changeset
	w.line(dashes, w.batch)
	w.line("Content-Type: "+multipartMixed+"; boundary=", w.changeset)
	w.line()
	return w
}

// Part begins the answer to an operation, whose header is header; no value has a
// line end.
func (w *Writer) Part(status int, header ...Field) {
	w.endPart()
	w.open = true
	w.line(dashes, w.boundary())
	w.line("Content-Type: ", operationType)
	w.line("Content-Transfer-Encoding: ", "binary")
	w.line()
	w.Buf = append(w.Buf, "HTTP/1.1 "...)
	w.Buf = append(strconv.AppendInt(w.Buf, int64(status), 10), ' ')
	w.line(http.StatusText(status))
	for _, f := range header {
		w.Buf = append(append(w.Buf, f.Name...), ": "...)
		w.line(f.Value)
	}
	w.line()
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

// boundary returns the one around the operations.
func (w *Writer) boundary() string {
	if w.changeset != "" {
		return w.changeset
	}
	return w.batch
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
