package batch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/odata/batch"
)

const mixed = "multipart/mixed; boundary=b"

// crlf ends the lines of s like most clients.
func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func TestParseDialects(t *testing.T) {
	insert := batch.Operation{
		Method: "POST", Target: "http://127.0.0.1:10002/acct/Book?$format=application%2Fjson",
		Header: batch.Header{{"Content-Type", "application/json"}, {"Prefer", "return-no-content"}}, Body: []byte(`{"a":1}`),
	}
	remove := batch.Operation{Method: "DELETE", Target: "/Book(PartitionKey='a', RowKey='b')", Header: batch.Header{{"If-Match", "*"}}}
	const insertHead = "POST http://127.0.0.1:10002/acct/Book?$format=application%2Fjson HTTP/1.1\nContent-Type: application/json\nPrefer: return-no-content\n"
	const removeHead = "DELETE /Book(PartitionKey='a', RowKey='b') HTTP/1.1\nIf-Match: *\n"
	const mimeHeader = "Content-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
	const open = "--b\nContent-Type: multipart/mixed; boundary=c\n\n"
	with := func(p batch.Operation, f ...batch.Field) batch.Operation {
		p.Header = append(p.Header[:len(p.Header):len(p.Header)], f...)
		return p
	}
	identified := insert
	identified.ContentID = "1"
	for _, c := range []struct {
		name, contentType, body string
		want                    []batch.Operation
	}{
		{
			"lines end in LF, no line end after the last", mixed,
			open + "--c\n" + mimeHeader + insertHead + "\n{\"a\":1}\n--c\n" + mimeHeader + removeHead + "\n\n--c--\n--b--",
			[]batch.Operation{insert, remove},
		},
		{
			"no line end after a header", mixed, open + "--c\n" + mimeHeader + removeHead + "A: {b}--c--\n--b--",
			[]batch.Operation{with(remove, batch.Field{Name: "A", Value: "{b}"})},
		},
		{
			"other encodings", mixed,
			open + "--c\nContent-Type: application/http\nContent-Transfer-Encoding: 8bit\n\n" + insertHead + "\n{\"a\":1}\n" +
				"--c\nContent-Type: application/http\nContent-Transfer-Encoding: 7Bit\n\n" + removeHead + "\n--c--\n--b--",
			[]batch.Operation{insert, remove},
		},
		{
			"blanks around a body", mixed, open + "--c\n" + mimeHeader + insertHead + "\n \t {\"a\":1}\t \n--c--\n--b--",
			[]batch.Operation{insert},
		},
		{
			"CRLF", mixed, crlf(open + "--c\n" + mimeHeader + insertHead + "\n{\"a\":1}\n--c\n" + mimeHeader + removeHead + "\n\n--c--\n--b--\n"),
			[]batch.Operation{insert, remove},
		},
		{
			"empty lines", mixed,
			crlf("\n\n" + open + "\n\n--c\n\n" + mimeHeader + "\n" + insertHead + "\n\n{\"a\":1}\n\n--c\n" + mimeHeader + removeHead + "\n\n\n\n--c--\n\n--b--\n\n"),
			[]batch.Operation{insert, remove},
		},
		{"no empty line after a header without body", mixed, open + "--c\n" + mimeHeader + removeHead + "--c--\n--b--", []batch.Operation{remove}},
		{
			"preamble and epilogue", mixed,
			"x\n-- b\n--bb\n" + open + "y\n--b2\n--c\n" + mimeHeader + removeHead + "\n--c--\nz\n--c\n--b--\n--b\nanything",
			[]batch.Operation{remove},
		},
		{
			"long preamble and epilogue", mixed,
			strings.Repeat("--bb\n", 800_000) + open + strings.Repeat("--c-\n", 800_000) +
				"--c\n" + mimeHeader + removeHead + "\n--c--\n--b--\n" + strings.Repeat("\n", 4<<20),
			[]batch.Operation{remove},
		},
		{
			"boundary of 70", "multipart/mixed; boundary=" + strings.Repeat("b", 70),
			strings.ReplaceAll(open+"--c\n"+mimeHeader+removeHead+"\n--c--\n--b--", "--b", "--"+strings.Repeat("b", 70)),
			[]batch.Operation{remove},
		},
		{
			"blanks after boundaries", mixed,
			"--b \nContent-Type: multipart/mixed; boundary=c\n\n--c\t\n" + mimeHeader + removeHead + "\n--c-- \n--b--  ",
			[]batch.Operation{remove},
		},
		{
			"names in lower case", "Multipart/Mixed ; charset=\"utf-8\"; boundary=b",
			"--b\ncontent-type: MULTIPART/MIXED;charset=\"utf-8\";boundary=\"c\"\n\n--c\ncontent-transfer-encoding:BINARY\ncontent-type:" +
				"Application/HTTP;msgtype=request\n\n" + removeHead + "\n--c--\n--b--",
			[]batch.Operation{remove},
		},
		{
			"quoted boundary", `multipart/mixed; boundary="a \b.*+?^$(;=)" ; charset=x`,
			strings.NewReplacer("--b\n", "--a b.*+?^$(;=)\n", "--b--", "--a b.*+?^$(;=)--").Replace(open + "--c\n" + mimeHeader + removeHead + "\n--c--\n--b--"),
			[]batch.Operation{remove},
		},
		{
			"odd boundary without quotes", "multipart/mixed;y;boundary={1=(2)]~} ; x",
			strings.NewReplacer("--b\n", "--{1=(2)]~}\n", "--b--", "--{1=(2)]~}--").Replace(open + "--c\n" + mimeHeader + removeHead + "\n--c--\n--b--"),
			[]batch.Operation{remove},
		},
		{
			"inner boundary begins with the outer", mixed,
			"--b\nContent-Type: multipart/mixed; boundary=bb\n\n--bb\n" + mimeHeader + removeHead + "\n--bb--\n--b--",
			[]batch.Operation{remove},
		},
		{
			"length", mixed, crlf(open + "--c\n" + mimeHeader + insertHead + "content-length: 7\n\n{\"a\":1}\n--c--\n--b--"),
			[]batch.Operation{with(insert, batch.Field{Name: "content-length", Value: "7"})},
		},
		{
			"length with line ends", mixed, crlf(open + "--c\n" + mimeHeader + insertHead + "Content-Length: 0011\n\n\n{\"a\":1}\n--c--\n--b--"),
			[]batch.Operation{with(insert, batch.Field{Name: "Content-Length", Value: "0011"})},
		},
		{
			"length 0", mixed, open + "--c\n" + mimeHeader + removeHead + "content-length: 0\ncontent-type:\n\n--c--\n--b--",
			[]batch.Operation{with(remove, batch.Field{Name: "content-length", Value: "0"}, batch.Field{Name: "content-type"})},
		},
		{
			"no line end after a body, of the C++ client", mixed,
			open + "--c\n" + mimeHeader + insertHead + "\n{\"a\":1}--c\n" + mimeHeader + insertHead + "\n{\"a\":1}--c\n" + mimeHeader + removeHead +
				"\n\n--c--\n--b\n",
			[]batch.Operation{insert, insert, remove},
		},
		{
			"a boundary in a body", mixed,
			open + "--c\n" + mimeHeader + "PUT /x HTTP/1.1\n\n{\"a\":\"}--c\",\"b\":\n\"--c\"}\n--c--\n--b--",
			[]batch.Operation{{Method: "PUT", Target: "/x", Header: batch.Header{}, Body: []byte("{\"a\":\"}--c\",\"b\":\n\"--c\"}")}},
		},
		{
			"last boundary without dashes, of the Rust client", mixed,
			open + "--c\n" + mimeHeader + insertHead + "\n{\"a\":1}\n--c\n" + mimeHeader + removeHead + "\n--c--\n--b\n",
			[]batch.Operation{insert, remove},
		},
		{"changeset without operations", mixed, open + "--c--\n--b--", nil},
		{"Content-ID in the MIME header", mixed, open + "--c\nContent-ID: 1\n" + mimeHeader + insertHead + "\n{\"a\":1}\n--c--\n--b--", []batch.Operation{insert}},
		{
			"Content-ID of the operation", mixed, open + "--c\n" + mimeHeader + insertHead + "content-id: 1\n\n{\"a\":1}\n--c--\n--b--",
			[]batch.Operation{with(identified, batch.Field{Name: "content-id", Value: "1"})},
		},
		{
			"Content-IDs in both headers", mixed,
			open + "--c\nContent-ID: 2\n" + mimeHeader + insertHead + "content-id: 1\n\n{\"a\":1}\n" +
				"--c\nContent-ID: 3\n" + mimeHeader + insertHead + "content-id: 1\n\n{\"a\":1}\n--c--\n--b--",
			[]batch.Operation{with(identified, batch.Field{Name: "content-id", Value: "1"}), with(identified, batch.Field{Name: "content-id", Value: "1"})},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := batch.Parse(c.contentType, []byte(c.body))
			if err != nil {
				t.Fatalf("Parse of %.500q: %v", c.body, err)
			}
			if d := cmp.Diff(batch.Request{Changeset: true, Operations: c.want}, got); d != "" {
				t.Errorf("Parse of %.500q (-want +got):\n%s", c.body, d)
			}
		})
	}
}

// TestParseRepeats parses every operation after every other, also if it or one that is like none
// is before both. The result must be the same as for the operation alone.
func TestParseRepeats(t *testing.T) {
	const mime, line, header = "Content-Type: application/http\n", "POST /x HTTP/1.1\n", "A: b\nContent-Length: 2\n"
	const operation = mime + "\n" + line + header + "\n{}\n"
	sections := []string{
		operation, crlf(operation), "\n" + operation, mime + "\n\n" + line + header + "\n{}\n",
		mime + "\n\r\n" + line + header + "\n{}", mime + "\n\r" + line + header + "\n{}", mime + "\n" + line + header + "\n\n{}\n\n",
		mime + "\n" + line + header + "\n", mime + "\n" + line + header, mime + "\n" + line + header + "C: d\n\n{}\n", mime + "\n" + line + "A: b\n\n{}\n",
		mime + "\n" + line + header + "\n{ }\n", mime + "\n" + line + "\n{}\n", mime + "\n" + line, mime + "\n" + strings.TrimSuffix(line, "\n"),
		mime + "\n", mime,
		"X: y\n" + operation, mime + "X: y\n\n" + line + header + "\n{}\n", mime + "x\n\n" + line, "Content-Type: text/plain\n\n" + line + header,
		mime + "\nPUT /x HTTP/1.1\n" + header + "\n{}\n", mime + "\nPOST /y HTTP/1.1\n" + header + "\n{}\n",
		mime + "\nPOST /x HTTP/1.0\n" + header + "\n{}\n", mime + "\nPOST /x\n" + header + "\n{}\n",
		mime + "\n" + line + header + "x\n\n{}\n", mime + "\n" + line + "Content-Length: 2\r\nA: b\r\n\r\n{}\n", mime + "\n" + line + "Transfer-Encoding: x\n\n{}\n",
		// A header without an empty line after it may continue.
		mime + "\n" + line + "A: b\n", mime + "\n" + line + "A: bc\n\n{}\n", mime + "\n" + line + "A: b\nC: d\n\n{}\n",
	}
	read := func(sections ...string) (batch.Request, error) {
		return batch.Parse(mixed, []byte("--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n"+strings.Join(sections, "--c\n")+"\n--c--\n--b--"))
	}
	for _, section := range sections {
		alone, wantErr := read(section)
		for _, before := range sections {
			if first, err := read(before); err != nil || len(first.Operations) != 1 {
				continue
			}
			if !strings.HasSuffix(before, "\n") {
				before += "\n"
			}
			both, err := read(before, section)
			if (err == nil) != (wantErr == nil) || err == nil && len(both.Operations) != 2 {
				t.Errorf("%q after %q: %+v, %v; alone: %v", section, before, both, err, wantErr)
				continue
			}
			if err != nil {
				got, want := err.(*batch.Error), *wantErr.(*batch.Error)
				if want.Operation++; *got != want {
					t.Errorf("%q after %q: %+v, want %+v", section, before, *got, want)
				}
				continue
			}
			if d := cmp.Diff(alone.Operations[0], both.Operations[1]); d != "" {
				t.Errorf("%q after %q (-alone +after):\n%s", section, before, d)
			}
			for _, first := range []string{strings.TrimSuffix(section, "\n") + "\n", mime + "\nDELETE /z HTTP/1.1\nZ: z\n\n"} {
				again, err := read(first, before, section)
				if err != nil || len(again.Operations) != 3 {
					t.Errorf("%q after %q and %q: %+v, %v", section, first, before, again, err)
				} else if d := cmp.Diff(alone.Operations[0], again.Operations[2]); d != "" {
					t.Errorf("%q after %q and %q (-alone +after):\n%s", section, first, before, d)
				}
			}
		}
	}
}

func TestParseQuery(t *testing.T) {
	want := batch.Request{Operations: []batch.Operation{{
		Method: "GET", Target: "/Book(PartitionKey='a',RowKey='b')?$select=x", Header: batch.Header{{"Accept", "application/json;odata=nometadata"}},
	}}}
	for _, body := range []string{
		"--b\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\nGET /Book(PartitionKey='a',RowKey='b')?$select=x HTTP/1.1\n" +
			"Accept: application/json;odata=nometadata\n\n--b--",
		crlf("--b\ncontent-type: application/http\n\nGET /Book(PartitionKey='a',RowKey='b')?$select=x HTTP/1.0\nAccept: " +
			"\tapplication/json;odata=nometadata \t\n\n\n\n--b--\n\n"),
	} {
		got, err := batch.Parse(mixed, []byte(body))
		if err != nil {
			t.Errorf("Parse of %q: %v", body, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Parse of %q (-want +got):\n%s", body, d)
		}
	}
}

// changeset returns a batch of operations. Each operation starts with its request line.
func changeset(operations ...string) string {
	var b strings.Builder
	b.WriteString("--b\nContent-Type: multipart/mixed; boundary=c\n\n")
	for _, o := range operations {
		b.WriteString("--c\nContent-Type: application/http\n\n" + o + "\n")
	}
	return b.String() + "--c--\n--b--"
}

func TestParseErrors(t *testing.T) {
	const ok = "DELETE /x HTTP/1.1\n"
	good := changeset(ok)
	change := func(old, text string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in %q", old, good)
		}
		return strings.Replace(good, old, text, 1)
	}
	nested := change("Content-Type: application/http", "Content-Type: multipart/mixed; boundary=d")
	for _, c := range []struct {
		name, contentType, body string
		kind                    batch.Kind
		operation               int
	}{
		{"no type", "", good, batch.BadType, 0},
		{"type of one operation", "application/http; boundary=b", good, batch.BadType, 0},
		{"other type of many", "multipart/form-data; boundary=b", good, batch.BadType, 0},
		{"no boundary", "multipart/mixed", good, batch.BadBoundary, 0},
		{"no boundary among parameters", "multipart/mixed; charset=utf-8; ;x", good, batch.BadBoundary, 0},
		{"boundary without a value", "multipart/mixed; boundary=", good, batch.BadBoundary, 0},
		{"boundary that ends in a backslash", `multipart/mixed; boundary="b\`, good, batch.BadBoundary, 0},
		{"empty boundary", `multipart/mixed; boundary=""`, good, batch.BadBoundary, 0},
		{"two boundaries", "multipart/mixed; boundary=b; Boundary=b", good, batch.BadBoundary, 0},
		{"boundary of 71", "multipart/mixed; boundary=" + strings.Repeat("b", 71), good, batch.BadBoundary, 0},
		{"boundary without closing quote", `multipart/mixed; boundary="b`, good, batch.BadBoundary, 0},
		{"text after the quote", `multipart/mixed; boundary="b"b`, good, batch.BadBoundary, 0},
		{"boundary that ends in a blank", `multipart/mixed; boundary="b "`, good, batch.BadBoundary, 0},
		{"backslash in a boundary", `multipart/mixed; boundary=b\b`, good, batch.BadBoundary, 0},
		{"control character in a boundary", "multipart/mixed; boundary=b\x01b", good, batch.BadBoundary, 0},
		{"DEL in a boundary", "multipart/mixed; boundary=b\x7fb", good, batch.BadBoundary, 0},
		{"boundary beyond ASCII", "multipart/mixed; boundary=\u00e4", good, batch.BadBoundary, 0},
		{"quote in a boundary", `multipart/mixed; boundary="\""`, good, batch.BadBoundary, 0},
		{"inner boundary missing", mixed, change("boundary=c", "x=c"), batch.BadBoundary, 0},
		{"one boundary for both", mixed, strings.ReplaceAll(good, "boundary=c", "boundary=b"), batch.Unterminated, 0},
		{
			"one boundary for both, twice", mixed,
			"--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" + "Content-Type: application/http\n\n" + ok + "--b--\n--b--", batch.Unterminated, 0,
		},
		{"no body", mixed, "", batch.Unterminated, 0},
		{"other boundary", "multipart/mixed; boundary=other", good, batch.Unterminated, 0},
		{"batch without end", mixed, strings.TrimSuffix(good, "--b--"), batch.Unterminated, 0},
		{"batch without dashes at its end, and text", mixed, strings.TrimSuffix(good, "--") + "\nx", batch.Misplaced, 1},
		{"changeset without end", mixed, change("--c--\n", ""), batch.Unterminated, 0},
		{"changeset without dashes at its end", mixed, change("--c--\n", "--c\n"), batch.Unterminated, 1},
		{"batch without operations", mixed, "--b--", batch.Empty, 0},
		{"operation without a type", mixed, change("Content-Type: application/http\n", "A: b\n"), batch.BadType, 0},
		{"operation without a header", mixed, change("Content-Type: application/http\n", ""), batch.BadHeader, 0},
		{"operation of another type", mixed, change("application/http", "application/json"), batch.BadType, 0},
		{"batch of another type", mixed, change("multipart/mixed", "multipart/form-data"), batch.BadType, 0},
		{"changeset in a changeset", mixed, nested, batch.Misplaced, 0},
		{"two changesets", mixed, change("--b--", "--b\n"+good[len("--b\n"):]), batch.Misplaced, 1},
		{"query beside a changeset", mixed, change("--b--", "--b\nContent-Type: application/http\n\nGET /x HTTP/1.1\n\n--b--"), batch.Misplaced, 1},
		{
			"two queries", mixed,
			"--b\nContent-Type: application/http\n\nGET /x HTTP/1.1\n\n--b\nContent-Type: application/http\n\nGET /x HTTP/1.1\n\n--b--", batch.Misplaced, 1,
		},
		{"query in a changeset", mixed, changeset(ok, "GET /x HTTP/1.1\n"), batch.Misplaced, 1},
		{"change outside a changeset", mixed, "--b\nContent-Type: application/http\n\n" + ok + "--b--", batch.Misplaced, 0},
		{"base64", mixed, change("application/http\n", "application/http\nContent-Transfer-Encoding: base64\n"), batch.BadHeader, 0},
		{"carriage return before a header", mixed, change("Content-Type: application/http\n", "\rA: b\nContent-Type: application/http\n"), batch.BadHeader, 0},
		{"no header", mixed, change("application/http\n", "application/http\nx\n"), batch.BadHeader, 0},
		{"blank before a colon", mixed, changeset(ok + "Host : x\n"), batch.BadHeader, 0},
		{"folded header", mixed, changeset(ok + "Host: x\n y: z\n"), batch.BadHeader, 0},
		{"header without a name", mixed, changeset(ok + ": x\n"), batch.BadHeader, 0},
		{"carriage return in a header", mixed, changeset(ok + "A: x\rB: y\n"), batch.BadHeader, 0},
		{"DEL in a header", mixed, changeset(ok + "A: \x7f\n"), batch.BadHeader, 0},
		{"NUL in a header", mixed, changeset(ok + "A: \x00\n"), batch.BadHeader, 0},
		{"JSON without an empty line before", mixed, changeset(ok + "{\"a\":1}\n"), batch.BadHeader, 0},
		{"many headers", mixed, changeset(ok + strings.Repeat("A: b\n", 33)), batch.BadHeader, 0},
		{"many MIME headers", mixed, change("application/http\n", "application/http\n"+strings.Repeat("A: b\n", 32)), batch.BadHeader, 0},
		{"many headers of a changeset", mixed, change("boundary=c\n", "boundary=c\n"+strings.Repeat("A: b\n", 32)), batch.BadHeader, 0},
		{"long header", mixed, changeset(ok, ok+"A: "+strings.Repeat("b", 64<<10)+"\n"), batch.BadHeader, 1},
		{"long MIME header", mixed, change("application/http\n", "application/http\nA: "+strings.Repeat("b", 64<<10)+"\n"), batch.BadHeader, 0},
		{
			"long header of a query", mixed,
			"--b\nContent-Type: application/http\n\nGET /x HTTP/1.1\nA: " + strings.Repeat("b", 64<<10) + "\n\n--b--", batch.BadHeader, 0,
		},
		{"long header of a changeset", mixed, change("boundary=c\n", "boundary=c\nA: "+strings.Repeat("b", 64<<10)+"\n"), batch.BadHeader, 0},
		{"chunks", mixed, changeset(ok + "transfer-encoding: chunked\n\n0\n"), batch.BadHeader, 0},
		{"one Content-ID twice", mixed, changeset(ok+"Content-ID: 1\n", ok, ok+"Content-ID: 1\n"), batch.BadHeader, 2},
		{"one MIME Content-ID twice", mixed, strings.ReplaceAll(changeset(ok, ok), "--c\n", "--c\nContent-ID: 1\n"), batch.BadHeader, 1},
		{
			"Content-ID in a MIME header and in an earlier operation", mixed,
			strings.Replace(changeset(ok+"Content-ID: 1\n", ok), "--c\nContent-Type: application/http\n\n"+ok+"\n",
				"--c\nContent-ID: 1\nContent-Type: application/http\n\n"+ok+"\n", 1),
			batch.BadHeader, 1,
		},
		{"no operation", mixed, changeset(ok, ""), batch.BadRequest, 1},
		{"one part without content", mixed, "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\n--c--\r\n\r\n--b--\r\n", batch.Blank, 0},
		{"two parts without content", mixed, "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\n--c\n\n--c--\n--b--", batch.BadType, 0},
		{"no target", mixed, changeset("DELETE HTTP/1.1\n"), batch.BadRequest, 0},
		{"target of blanks", mixed, changeset("DELETE   HTTP/1.1\n"), batch.BadRequest, 0},
		{"no method", mixed, changeset(" /x HTTP/1.1\n"), batch.BadRequest, 0},
		{"method of other characters", mixed, changeset("DEL(ETE /x HTTP/1.1\n"), batch.BadRequest, 0},
		{"HTTP/0.9", mixed, changeset("DELETE /x\n"), batch.BadRequest, 0},
		{"HTTP/2", mixed, changeset("DELETE /x HTTP/2.0\n"), batch.BadRequest, 0},
		{"control character in a target", mixed, changeset("DELETE /x\x01 HTTP/1.1\n"), batch.BadRequest, 0},
		{"length too short", mixed, changeset(ok + "Content-Length: 6\n\n{\"a\":1}\n"), batch.BadLength, 0},
		{"length into the next operation", mixed, changeset(ok+"Content-Length: 50\n\n{\"a\":1}\n", ok), batch.BadLength, 0},
		{"length with a plus", mixed, changeset(ok + "Content-Length: +7\n\n{\"a\":1}\n"), batch.BadLength, 0},
		{"negative length", mixed, changeset(ok + "Content-Length: -1\n\n{\"a\":1}\n"), batch.BadLength, 0},
		{"length of 2^64+7", mixed, changeset(ok + "Content-Length: 18446744073709551623\n\n{\"a\":1}\n"), batch.BadLength, 0},
		{"length of a letter", mixed, changeset(ok + "Content-Length: a\n"), batch.BadLength, 0},
		{"list of lengths", mixed, changeset(ok + "Content-Length: 7, 7\n\n{\"a\":1}\n"), batch.BadLength, 0},
		{"empty length", mixed, changeset(ok + "Content-Length:\n\n{\"a\":1}\n"), batch.BadLength, 0},
		{"two lengths", mixed, changeset(ok + "Content-Length: 7\nContent-Length: 7\n\n{\"a\":1}\n"), batch.BadLength, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := batch.Parse(c.contentType, []byte(c.body))
			var e *batch.Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse of %q: %+v, %v, want an *Error", c.body, got, err)
			}
			if e.Kind != c.kind || e.Operation != c.operation || e.What == "" {
				t.Errorf("Parse of %.200q: kind %d at %d, want %d at %d: %v", c.body, e.Kind, e.Operation, c.kind, c.operation, err)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the message has %d bytes: %.100s", len(err.Error()), err)
			}
		})
	}
}

// TestParseCounts parses batches with up to and above the maximum number of operations.
func TestParseCounts(t *testing.T) {
	for _, c := range []struct{ given, want int }{{1, 1}, {100, 100}, {101, 101}, {102, 101}, {5000, 101}} {
		var operations []string
		for i := range c.given {
			operations = append(operations, fmt.Sprintf("DELETE /x%d HTTP/1.1\n", i))
		}
		b, err := batch.Parse(mixed, []byte(changeset(operations...)))
		if err != nil || len(b.Operations) != c.want || b.Operations[c.want-1].Target != fmt.Sprintf("/x%d", c.want-1) {
			t.Errorf("%d operations: %d, %v, want %d", c.given, len(b.Operations), err, c.want)
		}
	}
}

// TestParseSharesBodies checks that only bodies share the memory of the batch.
func TestParseSharesBodies(t *testing.T) {
	body := []byte(changeset("POST /x HTTP/1.1\nA: b\nContent-ID: i\n\n{}\n"))
	b, err := batch.Parse(mixed, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = '!'
	}
	want := batch.Operation{Method: "POST", Target: "/x", ContentID: "i", Header: batch.Header{{"A", "b"}, {"Content-ID", "i"}}, Body: []byte("!!")}
	if d := cmp.Diff(want, b.Operations[0]); d != "" {
		t.Errorf("the operation changed (-want +got):\n%s", d)
	}
}

func TestHeader(t *testing.T) {
	h := batch.Header{{"If-Match", "*"}, {"if-match", "x"}, {"\u212aey", "k"}}
	if got := h.Get("IF-MATCH"); got != "*" {
		t.Errorf("Get finds %q, want the first", got)
	}
	if h.Get("key") != "" || h.Get("If-Matc") != "" {
		t.Error("Get finds an absent name")
	}
	if n := h.Count("If-Match"); n != 2 {
		t.Errorf("Count is %d, want 2", n)
	}
	if got := h.Values("IF-Match"); !slices.Equal(got, []string{"*", "x"}) || h.Values("key") != nil {
		t.Errorf("Values are %q, want both", got)
	}
	if h := (batch.Header{{"AZ^", "a"}}); h.Get("az^") != "a" || h.Get("az~") != "" {
		t.Errorf("%v folds the case of other characters than letters, or not of A and Z", h)
	}
}

// TestHeaderIs parses operations of which the first two have the same header, and the next
// one of as many fields.
func TestHeaderIs(t *testing.T) {
	const line = "DELETE /x HTTP/1.1\n"
	b, err := batch.Parse(mixed, []byte(changeset(line+"A: b\n", line+"A: b\n", line+"A: c\n", line, line)))
	if err != nil {
		t.Fatal(err)
	}
	for i, first := range []int{0, 0, 2, 3, 3} {
		for j := range b.Operations {
			h, g := b.Operations[i].Header, b.Operations[j].Header
			if want := first == []int{0, 0, 2, 3, 3}[j]; h.Is(g) != want {
				t.Errorf("header %d, %v, is header %d, %v: %v, want %v", i, h, j, g, !want, want)
			}
		}
	}
}

// TestHeaderCharacters parses names of fields with each character, and as many fields as are
// allowed.
func TestHeaderCharacters(t *testing.T) {
	const valid = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const line = "DELETE /x HTTP/1.1\n"
	for c := range 256 {
		if c == ':' || c == '\n' { // they end the name and the line
			continue
		}
		_, err := batch.Parse(mixed, []byte(changeset(line+"A"+string([]byte{byte(c)})+"B: x\n")))
		if want := strings.IndexByte(valid, byte(c)) >= 0; (err == nil) != want {
			t.Errorf("a name with %q: error %v, valid %v", byte(c), err, want)
		}
	}
	if _, err := batch.Parse(mixed, []byte(changeset(line+strings.Repeat("A: b\n", 32)))); err != nil {
		t.Errorf("32 fields: %v", err)
	}
}
