package explorer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/jsontext"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/tempfile"
	"github.com/tablerock-db/tablerock/store"
)

// refusal is an error with its response.
type refusal struct {
	status int
	Failure
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// Refuse returns an error with its response.
func Refuse(status int, code, message string) error {
	return &refusal{status, Failure{Code: code, Message: message}}
}

func badInput(message string) error { return Refuse(http.StatusBadRequest, "InvalidInput", message) }

// failureOf returns the response to an error. Unexpected errors are logged and not shown,
// since they can name files.
func (h *Handler) failureOf(err error) (int, *Failure) {
	if own := (*refusal)(nil); errors.As(err, &own) {
		return own.status, &own.Failure
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, &Failure{Code: "RequestBodyTooLarge", Message: "The body of the request is too large."}
	case errors.Is(err, errors.ErrUnsupported):
		return http.StatusNotImplemented, &Failure{Code: "NotImplemented", Message: "This backend cannot do it."}
	case errors.Is(err, store.ErrReadOnly):
		return http.StatusServiceUnavailable, &Failure{Code: "ReadOnly", Message: "The database accepts no writes."}
	case errors.Is(err, tempfile.ErrLimit):
		return http.StatusRequestEntityTooLarge, &Failure{Code: "FilesTooLarge", Message: "Exports and Parquet files of imports can have 16 GiB together. " +
			"Log out to remove the exports, or use the commands \"tablerock import\" and \"tablerock export\"."}
	case errors.Is(err, tempfile.ErrFull):
		return http.StatusInsufficientStorage, &Failure{Code: "NoSpace", Message: "The server has too little space for temporary files, which are " +
			"exports and Parquet files of imports. Free space there, or use the commands \"tablerock import\" and \"tablerock export\"."}
	case errors.Is(err, store.ErrNoSpace):
		return http.StatusInsufficientStorage, &Failure{Code: "NoSpace", Message: "The disk is full: only deletions are accepted."}
	}
	status, code, message := h.o.Problem(err)
	f := &Failure{Code: code, Message: message}
	if op := (*store.OpError)(nil); errors.As(err, &op) {
		f.Index = &op.Index
	}
	if syntax := (*filter.Error)(nil); errors.As(err, &syntax) {
		f.Position = &syntax.Position
	}
	if value := (*odata.Error)(nil); errors.As(err, &value) {
		f.Property, f.Detail = value.Member, value.What
	}
	if rule := (*edm.Error)(nil); errors.As(err, &rule) {
		f.Property, f.Detail = rule.Name, rule.Error()
	}
	if status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		h.o.Log.Error("explorer", "code", code, "err", err.Error())
	}
	return status, f
}

// fail sends the response to an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, f := h.failureOf(err)
	if !strings.HasPrefix(r.URL.Path, Root+"api/") && r.Method == http.MethodGet {
		h.pages.serveError(w, r, status, f.Message)
		return
	}
	send(w, r, status, f)
}

// send sends a value as JSON.
func send(w http.ResponseWriter, r *http.Request, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"code":"InternalError","message":"The response has no JSON."}`)
	}
	sendText(w, r, status, "application/json", text)
}

// minCompressed is the size from which a response is compressed.
const minCompressed = 1 << 10

var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return z
}}

// sendText sends a response, compressed if it is large and the browser accepts it.
func sendText(w http.ResponseWriter, r *http.Request, status int, contentType string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept-Encoding")
	if len(text) >= minCompressed && acceptsGzip(r) {
		var b bytes.Buffer
		z := compressors.Get().(*gzip.Writer)
		z.Reset(&b)
		_, _ = z.Write(text) // a Buffer accepts everything
		_ = z.Close()
		compressors.Put(z)
		h.Set("Content-Encoding", "gzip")
		text = b.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // an error means that the client is gone
}

func acceptsGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if name, q, _ := strings.Cut(strings.TrimSpace(one), ";"); name == "gzip" {
			return strings.TrimSpace(q) != "q=0"
		}
	}
	return false
}

// maxBody limits the JSON of a request.
const maxBody = 8 << 20

// read parses the body of a request. A body of another type than JSON could come from a form
// of another origin.
func (x *exchange) read(v any) error {
	if kind, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type")); kind != "application/json" {
		return Refuse(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "The body must be application/json.")
	}
	text, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err != nil || !jsontext.Valid(text) || d.Decode(v) != nil {
		return badInput("The body is not the JSON of this request.")
	}
	return nil
}

// number returns a query parameter in a range, or a default without it.
func (x *exchange) number(name string, usual, lowest, highest int64) (int64, error) {
	text := x.r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, badInput("The parameter " + name + " must be from " + strconv.FormatInt(lowest, 10) + " to " + strconv.FormatInt(highest, 10) + ".")
	}
	return n, nil
}
