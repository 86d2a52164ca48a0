package batch_test

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	stdmultipart "mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/odata/batch"
)

func TestWriteChangeset(t *testing.T) {
	w := batch.NewWriter([]byte("before "), "G1", "G2")
	w.BeginOperation(http.StatusNoContent, batch.Field{Name: "Content-ID", Value: "1"}, batch.Field{Name: "DataServiceVersion", Value: "3.0;"})
	w.BeginOperation(http.StatusCreated, batch.Field{Name: "ETag", Value: `W/"x"`})
	w.Buf = append(w.Buf, `{"a":1}`...)
	want := crlf(`before --batchresponse_G1
Content-Type: multipart/mixed; boundary=changesetresponse_G2

--changesetresponse_G2
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
Content-ID: 1
DataServiceVersion: 3.0;


--changesetresponse_G2
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 201 Created
ETag: W/"x"

{"a":1}
--changesetresponse_G2--
--batchresponse_G1--
`)
	got := string(w.End())
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if ct := batch.ContentType("G1"); ct != "multipart/mixed; boundary=batchresponse_G1" {
		t.Errorf("ContentType: %s", ct)
	}
}

func TestWriteQuery(t *testing.T) {
	w := batch.NewWriter(nil, "G1", "")
	w.BeginOperation(http.StatusOK, batch.Field{Name: "Cache-Control", Value: "no-cache"})
	w.Buf = append(w.Buf, "{}"...)
	want := crlf(`--batchresponse_G1
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 200 OK
Cache-Control: no-cache

{}
--batchresponse_G1--
`)
	if got := string(w.End()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestStandardLibraryReadsResponse reads a response with mime/multipart and net/http.
func TestStandardLibraryReadsResponse(t *testing.T) {
	w := batch.NewWriter(nil, "1", "2")
	for _, status := range []int{204, 412} {
		w.BeginOperation(status, batch.Field{Name: "X", Value: "y"})
		if status != http.StatusNoContent {
			w.Buf = append(w.Buf, "body"...)
		}
	}
	response := w.End()
	outer := open(t, batch.ContentType("1"), bytes.NewReader(response))
	part, err := outer.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	inner := open(t, part.Header.Get("Content-Type"), part)
	for _, status := range []int{204, 412} {
		p, err := inner.NextRawPart()
		if err != nil {
			t.Fatalf("%s: %v", response, err)
		}
		r, err := http.ReadResponse(bufio.NewReader(p), nil)
		if err != nil {
			t.Fatalf("%s: %v", response, err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != status || r.Header.Get("X") != "y" || p.Header.Get("Content-Transfer-Encoding") != "binary" {
			t.Errorf("%s: status %d, header %v, %v", response, r.StatusCode, r.Header, err)
		}
		if want := strings.Repeat("body", (status/100)/4); string(body) != want {
			t.Errorf("%s: body %q, want %q", response, body, want)
		}
	}
	if _, err := inner.NextPart(); err != io.EOF {
		t.Errorf("a third operation: %v", err)
	}
	if _, err := outer.NextPart(); err != io.EOF {
		t.Errorf("a second changeset: %v", err)
	}
}

func open(t *testing.T, contentType string, r io.Reader) *stdmultipart.Reader {
	t.Helper()
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("%s: %v", contentType, err)
	}
	return stdmultipart.NewReader(r, params["boundary"])
}
