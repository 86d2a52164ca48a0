package batch

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// parser collects operations. Most clients repeat the bytes before each body, or all
// except the request line. The parser does not parse bytes that repeat those of the
// previous operation.
type parser struct {
	bytes      int // length of the batch
	operations []Operation
	err        *Error // of the first invalid operation; errors of an envelope take precedence

	mime, header block  // of the last operation, as sent
	line         []byte // its request line
	mimeID       string // the Content-ID of its MIME header
	length       string // its Content-Length, "" if there is none

	ids    []string
	fields Header
	texts  strings.Builder
}

// rawOperation holds the bytes of an operation.
type rawOperation struct {
	mime, line, header, body []byte
	sameMIME, sameHeader     bool // repeat those of the previous operation
}

// block is a header as sent, with the empty line that ends it. It is empty for a
// header without that line, because the next header may repeat its lines and continue.
type block struct {
	text  []byte
	bytes int // length of the header without the empty line
}

// cut cuts the header from text and reports whether it repeats b. If not, it sets b to
// the header. Parsing every header anew costs the server 18 % more CPU for batches
// (bench/endpoint, batch).
func (b *block) cut(text []byte) (header, after []byte, same bool) {
	if len(b.text) > 0 && bytes.HasPrefix(text, b.text) {
		return text[:b.bytes], text[len(b.text):], true
	}
	header, after = cutHeader(text)
	*b = block{}
	if after != nil {
		*b = block{text[:len(text)-len(after)], len(header)}
	}
	return header, after, false
}

// maxHeaderBytes limits one header, including the request line.
const (
	maxHeaderBytes = 64 << 10
	tooLong        = "a header of more than 64 KiB"
)

// add parses the operation of one section.
func (p *parser) add(section []byte) error {
	var raw rawOperation
	var rest []byte
	raw.mime, rest, raw.sameMIME = p.mime.cut(skipEmpty(section))
	rest = skipEmpty(rest)
	raw.line = rest[:bytes.IndexByte(rest, '\n')+1]
	if len(raw.line) == 0 {
		raw.line = rest
	}
	raw.header, raw.body, raw.sameHeader = p.header.cut(rest[len(raw.line):])
	if len(raw.mime) > maxHeaderBytes || len(raw.line)+len(raw.header) > maxHeaderBytes {
		return p.fail(BadHeader, tooLong)
	}
	i := len(p.operations)
	if i == 0 { // the others are probably of the same length
		p.operations = make([]Operation, 0, min(MaxOperations, p.bytes/max(1, len(section))+1))
	}
	p.operations = append(p.operations, Operation{})
	if p.err == nil {
		if p.err = p.parse(&raw); p.err != nil {
			p.err.Operation = i
		}
	}
	return nil
}

// parse parses raw into the last element of p.operations.
func (p *parser) parse(raw *rawOperation) *Error {
	n := len(p.operations)
	op, before := &p.operations[n-1], &p.operations[max(0, n-2)]
	if !raw.sameMIME {
		if err := p.parseMIME(p.text(raw.mime)); err != nil {
			return err
		}
	}
	if before.Method != "" && bytes.Equal(raw.line, p.line) {
		op.Method, op.Target = before.Method, before.Target
	} else if line := p.text(bytes.TrimSuffix(raw.line, []byte{'\n'})); !op.parseRequestLine(strings.TrimSuffix(line, "\r")) {
		return &Error{Kind: BadRequest, What: "found " + quote(line) + ", want a request line such as GET /path HTTP/1.1"}
	}
	p.line = raw.line
	if raw.sameHeader {
		op.Header, op.ContentID = before.Header, before.ContentID
	} else if err := p.parseHeader(op, p.text(raw.header)); err != nil {
		return err
	}
	op.Body = trimBlank(raw.body)
	if err := checkLength(p.length, len(op.Body), len(raw.body)); err != nil {
		return err
	}
	return p.checkID(op.ContentID)
}

// text returns a copy of b as a string. Strings share chunks of memory.
func (p *parser) text(b []byte) string {
	const chunkBytes = 2048
	if p.texts.Cap()-p.texts.Len() < len(b) {
		p.texts = strings.Builder{}
		p.texts.Grow(max(len(b), chunkBytes))
	}
	from := p.texts.Len()
	p.texts.Write(b)
	return p.texts.String()[from:]
}

const contentID = "Content-ID"

// parseMIME parses the MIME header of an operation.
func (p *parser) parseMIME(text string) *Error {
	h, wrong := appendFields(p.fields[len(p.fields):], text)
	if wrong != "" {
		return &Error{Kind: BadHeader, What: wrong}
	}
	p.mimeID = h.Get(contentID)
	name, _ := cutMediaType(h.Get("Content-Type"))
	switch {
	case equalFold(name, multipartMixed):
		return &Error{Kind: Misplaced, What: "a changeset in or beside another"}
	case !equalFold(name, operationType):
		return &Error{Kind: BadType, What: "the operation has type " + quote(name) + ", want " + operationType}
	}
	switch e := h.Get("Content-Transfer-Encoding"); {
	case e == "", equalFold(e, "binary"), equalFold(e, "8bit"), equalFold(e, "7bit"):
		return nil
	default:
		return &Error{Kind: BadHeader, What: "the operation has encoding " + quote(e) + ", want binary"}
	}
}

// parseRequestLine parses the request line. The target may contain blanks, like links
// in old documents.
func (o *Operation) parseRequestLine(line string) bool {
	method, rest, _ := strings.Cut(line, " ")
	i := strings.LastIndexByte(rest, ' ')
	if i < 0 || !isToken(method) || !isText(rest) || rest[i+1:] != "HTTP/1.1" && rest[i+1:] != "HTTP/1.0" {
		return false
	}
	o.Method, o.Target = method, strings.Trim(rest[:i], " ")
	return o.Target != ""
}

// parseHeader parses the header of an operation.
func (p *parser) parseHeader(op *Operation, text string) *Error {
	from := len(p.fields)
	var wrong string
	if p.fields, wrong = appendFields(p.fields, text); wrong != "" {
		return &Error{Kind: BadHeader, What: wrong}
	}
	op.Header = p.fields[from:len(p.fields):len(p.fields)]
	op.ContentID = op.Header.Get(contentID)
	if op.Header.Count("Transfer-Encoding") > 0 {
		return &Error{Kind: BadHeader, What: "an operation with Transfer-Encoding"}
	}
	p.length = ""
	switch op.Header.Count("Content-Length") {
	case 0:
		return nil
	case 1:
	default:
		return &Error{Kind: BadLength, What: "more than one Content-Length"}
	}
	p.length = op.Header.Get("Content-Length")
	if _, err := strconv.ParseUint(p.length, 10, 32); err != nil {
		return &Error{Kind: BadLength, What: "Content-Length " + quote(p.length) + " is not a number"}
	}
	return nil
}

// checkLength checks Content-Length, which may include the empty lines before and
// after the body or not.
func checkLength(stated string, body, section int) *Error {
	if stated == "" {
		return nil
	}
	if n, _ := strconv.Atoi(stated); n < body || n > section {
		return &Error{Kind: BadLength, What: "Content-Length is " + stated + ", but the body has " + strconv.Itoa(body) + " bytes"}
	}
	return nil
}

// checkID reports a Content-ID that an earlier operation has. The Content-ID of the
// MIME header takes precedence over id.
func (p *parser) checkID(id string) *Error {
	if p.mimeID != "" {
		id = p.mimeID
	}
	if id == "" {
		return nil
	}
	if slices.Contains(p.ids, id) {
		return &Error{Kind: BadHeader, What: "duplicate Content-ID " + quote(id)}
	}
	p.ids = append(p.ids, id)
	return nil
}
