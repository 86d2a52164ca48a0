package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/odata/batch"
)

// FuzzBatch parses any body of any type as a batch. A batch that parses is the same after it
// is written and parsed again; only a changeset may be empty. An error is a *batch.Error.
func FuzzBatch(f *testing.F) {
	const plain = "multipart/mixed; boundary=b"
	const part = "--c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
	const open = "--b\nContent-Type: multipart/mixed; boundary=c\n\n"
	f.Add(plain, []byte(open+part+"POST /t HTTP/1.1\nContent-Length: 7\nContent-ID: 1\n\n{\"a\":1}\n"+
		part+"DELETE http://h:1/a/t(PartitionKey='p',RowKey='r') HTTP/1.1\nIf-Match: *\n\n\n--c--\n--b--"))
	f.Add(`Multipart/MIXED; charset="utf-8"; boundary="b"`, []byte("x\r\n--b\r\ncontent-type: multipart/mixed;boundary=\"c\"\r\n\r\n\r\n--c\r\n"+
		"content-type: application/http\r\n\r\nPATCH /t HTTP/1.0\r\n\r\n\r\n{}\r\n--c-- \r\ny\r\n--b--\r\nz"))
	f.Add("multipart/mixed;boundary=b", []byte("--b\nContent-Type: application/http\n\nGET /t(PartitionKey='p', RowKey='r') HTTP/1.1\n\n--b--"))
	f.Add(plain, []byte("--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n--b--"))
	f.Add(plain, []byte(open+part+"PUT /t HTTP/1.1\nContent-Length: 900\n\n{}\n--c--\n--b--"))
	f.Add(plain, []byte(open+"--c--\n--b--"))
	f.Add(plain, []byte(open+"--c\n\n--c--\n--b--"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		given := bytes.Clone(body)
		b, err := batch.Parse(contentType, body)
		if !bytes.Equal(body, given) {
			t.Fatalf("Parse changed %q", given)
		}
		if err != nil {
			var refusal *batch.Error
			if !errors.As(err, &refusal) || refusal.Kind < batch.BadType || refusal.Kind > batch.Blank ||
				refusal.Operation < 0 || refusal.Operation > batch.MaxOperations || refusal.What == "" {
				t.Fatalf("Parse(%q, %q): %#v", contentType, body, err)
			}
			return
		}
		if n := len(b.Operations); n > batch.MaxOperations || !b.Changeset && n != 1 {
			t.Fatalf("Parse(%q, %q): %d operations, changeset %t", contentType, body, n, b.Changeset)
		}
		contentType, again := writeBatch(b)
		got, err := batch.Parse(contentType, again)
		if err != nil {
			t.Fatalf("%q is written as %q, which does not parse: %v", body, again, err)
		}
		if d := cmp.Diff(b, got); d != "" {
			t.Fatalf("%q is written as %q, which differs (-want +got):\n%s", body, again, d)
		}
	})
}

// FuzzOperations parses a batch of several operations and compares each with the same
// operation alone, because the parser reuses results of the operation before. It omits
// operations that do not parse alone.
func FuzzOperations(f *testing.F) {
	const mime = "Content-Type: application/http\n\n"
	const post = mime + "POST /t HTTP/1.1\nPrefer: x\nContent-Length: 2\n\n{}\n"
	f.Add([]byte(post + "--c\n" + post + "--c\n" + mime + "POST /t HTTP/1.1\nPrefer: y\nContent-Length: 3\n\n{ }"))
	f.Add([]byte(post + "--c\n" + mime + "POST /t HTTP/1.1\n\n{}\n--c\n" + mime + "POST /u HTTP/1.1\n\n{}\n--c\n" + mime + "POST /u HTTP/1.1\nA: b\n"))
	f.Add([]byte(post + "--c\n" + mime + "POST /t HTTP/1.1\nPrefer: x\nContent-Length: 2\nA: b\n\n{}\n--c\nX: y\n" + post + "--c\nX: y\nA: b\n" + post))
	f.Add([]byte("Content-ID: 1\n" + post + "--c\nContent-ID: 2\n" + post + "--c\nContent-ID: 1\n" + post))
	f.Add([]byte(mime + "DELETE /t HTTP/1.1\r\nContent-ID: 1\r\n\r\n--c\n" +
		mime + "DELETE /t HTTP/1.1\r\nContent-ID: 2\r\n\r\n--c\n" + mime + "DELETE /t HTTP/1.1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parse := func(operations ...[]byte) ([]batch.Operation, error) {
			body := fmt.Appendf(nil, "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n%s\n--c--\n--b--",
				bytes.Join(operations, []byte("\n--c\n")))
			b, err := batch.Parse("multipart/mixed; boundary=b", body)
			return b.Operations, err
		}
		var taken [][]byte
		var want []batch.Operation
		for _, operation := range bytes.Split(text, []byte("--c\n")) {
			if alone, err := parse(operation); err == nil && len(alone) == 1 && len(taken) < batch.MaxOperations {
				taken, want = append(taken, operation), append(want, alone[0])
			}
		}
		got, err := parse(taken...)
		if len(taken) == 0 || err != nil && strings.Contains(err.Error(), "duplicate Content-ID") {
			return
		}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("%q: %v, (-alone +together):\n%s", taken, err, d)
		}
	})
}

// writeBatch returns the body of b.
func writeBatch(b batch.Request) (contentType string, body []byte) {
	outer, inner := freeBoundary(b, "batch"), freeBoundary(b, "changeset")
	w := new(bytes.Buffer)
	fmt.Fprintf(w, "--%s\n", outer)
	if b.Changeset {
		fmt.Fprintf(w, "Content-Type: multipart/mixed; boundary=%s\n\n", inner)
	}
	for i, p := range b.Operations {
		if b.Changeset {
			fmt.Fprintf(w, "--%s\n", inner)
		}
		fmt.Fprint(w, "Content-Type: application/http\n")
		// Two operations may have the same Content-ID if their MIME parts have others.
		fmt.Fprintf(w, "Content-ID:%d\n\n%s %s HTTP/1.1\n", i, p.Method, p.Target)
		for _, h := range p.Header {
			fmt.Fprintf(w, "%s:%s\n", h.Name, h.Value)
		}
		fmt.Fprintf(w, "\n%s", p.Body)
		if n, err := strconv.Atoi(p.Header.Get("Content-Length")); err == nil { // may include line ends
			w.Write(bytes.Repeat([]byte(" "), n-len(p.Body)))
		}
		fmt.Fprint(w, "\n")
	}
	if b.Changeset {
		fmt.Fprintf(w, "--%s--\n", inner)
	}
	fmt.Fprintf(w, "--%s--", outer)
	return "multipart/mixed; boundary=" + outer, w.Bytes()
}

// freeBoundary returns a boundary that no body contains.
func freeBoundary(b batch.Request, name string) string {
	for n := 0; ; n++ {
		boundary, free := fmt.Sprintf("%s_%d", name, n), true
		for _, p := range b.Operations {
			free = free && !bytes.Contains(p.Body, []byte(boundary))
		}
		if free {
			return boundary
		}
	}
}
