package batch

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// parser gathers operations. Clients repeat what stands before the bodies byte by
// byte, all of it or all but the request line: what is as in the part before is
// not read again.
type parser struct {
	bytes int // of the batch
	parts []Operation
	wrong *Error // with the first bad operation; what is wrong with an envelope comes first

	mime, header block  // of the last part, as they were sent
	line         []byte // its request line
	mimeID       string // the Content-ID in its MIME header
	length       string // its Content-Length, "" if there is none

	ids    []string
	fields Header
	texts  strings.Builder
}

// raw is a part as it stands in the batch.
type raw struct {
	mime, line, header, body []byte
	sameMIME, sameHeader     bool // as those of the part before
}

// block is a header as it was sent, with the empty line that ends it. Without that
// line it is empty, since what follows is needed to tell where it ends.
type block struct {
	text  []byte
	bytes int // of the header
}

// cut takes a header off text, and reports whether it is b again; else b becomes
// that.
func (b *block) cut(text []byte) (head, after []byte, same bool) {
	if len(b.text) > 0 && bytes.HasPrefix(text, b.text) {
		return text[:b.bytes], text[len(b.text):], true
	}
	head, after = cutHead(text)
	*b = block{}
	if after != nil {
		*b = block{text[:len(text)-len(after)], len(head)}
	}
	return head, after, false
}

// maxHead is the most bytes of one header, request line included.
const (
	maxHead = 64 << 10
	tooLong = "a header of more than 64 KiB"
)

// add takes one operation.
func (p *parser) add(section []byte) error {
	var r raw
	var rest []byte
	r.mime, rest, r.sameMIME = p.mime.cut(skipEmpty(section))
	rest = skipEmpty(rest)
	r.line = rest[:bytes.IndexByte(rest, '\n')+1]
	if len(r.line) == 0 {
		r.line = rest
	}
	r.header, r.body, r.sameHeader = p.header.cut(rest[len(r.line):])
	if len(r.mime) > maxHead || len(r.line)+len(r.header) > maxHead {
		return p.fail(BadHeader, tooLong)
	}
	i := len(p.parts)
	if i == 0 { // the others are probably as long
		p.parts = make([]Operation, 0, min(MaxOperations, p.bytes/max(1, len(section))+1))
	}
	p.parts = append(p.parts, Operation{})
	if p.wrong == nil {
		if p.wrong = p.read(&r); p.wrong != nil {
			p.wrong.Operation = i
		}
	}
	return nil
}

// read makes the last of p.parts of r.
func (p *parser) read(r *raw) *Error {
	n := len(p.parts)
	part, before := &p.parts[n-1], &p.parts[max(0, n-2)]
	if !r.sameMIME {
		if err := p.readMIME(p.text(r.mime)); err != nil {
			return err
		}
	}
	if before.Method != "" && bytes.Equal(r.line, p.line) {
		part.Method, part.Target = before.Method, before.Target
	} else if line := p.text(bytes.TrimSuffix(r.line, []byte{'\n'})); !part.request(strings.TrimSuffix(line, "\r")) {
		return &Error{Kind: BadRequest, What: quote(line) + " stands where a request line as GET /path HTTP/1.1 should"}
	}
	p.line = r.line
	if r.sameHeader {
		part.Header, part.ContentID = before.Header, before.ContentID
	} else if err := p.readHeader(part, p.text(r.header)); err != nil {
		return err
	}
	part.Body = trimBlank(r.body)
	if err := checkLength(p.length, len(part.Body), len(r.body)); err != nil {
		return err
	}
	return p.checkID(part.ContentID)
}

// text returns b as a text of its own, which shares memory with others.
func (p *parser) text(b []byte) string {
	const room = 2048
	if p.texts.Cap()-p.texts.Len() < len(b) {
		p.texts = strings.Builder{}
		p.texts.Grow(max(len(b), room))
	}
	from := p.texts.Len()
	p.texts.Write(b)
	return p.texts.String()[from:]
}

const contentID = "Content-ID"

// readMIME reads the header of a part.
func (p *parser) readMIME(text string) *Error {
	h, wrong := appendFields(p.fields[len(p.fields):], text)
	if wrong != "" {
		return &Error{Kind: BadHeader, What: wrong}
	}
	p.mimeID = h.Get(contentID)
	name, _ := cutMediaType(h.Get("Content-Type"))
	switch {
	case equalFold(name, multipartMixed):
		return &Error{Kind: Misplaced, What: "a changeset stands in or beside another"}
	case !equalFold(name, operationType):
		return &Error{Kind: BadType, What: "the part is of type " + quote(name) + ", and should be of " + operationType}
	}
	switch e := h.Get("Content-Transfer-Encoding"); {
	case e == "", equalFold(e, "binary"), equalFold(e, "8bit"), equalFold(e, "7bit"):
		return nil
	default:
		return &Error{Kind: BadHeader, What: "the part is encoded as " + quote(e) + ", and should be binary"}
	}
}

// request reads the request line. A target may have blanks in it, as links in
// old documents do.
func (p *Operation) request(line string) bool {
	method, rest, _ := strings.Cut(line, " ")
	i := strings.LastIndexByte(rest, ' ')
	if i < 0 || !isToken(method) || !isText(rest) || rest[i+1:] != "HTTP/1.1" && rest[i+1:] != "HTTP/1.0" {
		return false
	}
	p.Method, p.Target = method, strings.Trim(rest[:i], " ")
	return p.Target != ""
}

// readHeader reads the header of an operation.
func (p *parser) readHeader(part *Operation, text string) *Error {
	from := len(p.fields)
	var wrong string
	if p.fields, wrong = appendFields(p.fields, text); wrong != "" {
		return &Error{Kind: BadHeader, What: wrong}
	}
	part.Header = p.fields[from:len(p.fields):len(p.fields)]
	part.ContentID = part.Header.Get(contentID)
	if part.Header.Count("Transfer-Encoding") > 0 {
		return &Error{Kind: BadHeader, What: "an operation has no Transfer-Encoding"}
	}
	p.length = ""
	switch part.Header.Count("Content-Length") {
	case 0:
		return nil
	case 1:
	default:
		return &Error{Kind: BadLength, What: "there are two lengths"}
	}
	p.length = part.Header.Get("Content-Length")
	if _, err := strconv.ParseUint(p.length, 10, 32); err != nil {
		return &Error{Kind: BadLength, What: quote(p.length) + " is no length"}
	}
	return nil
}

// checkLength looks at a stated length. It counts from the body's first byte, empty
// lines before it included or not, to its last, or ends among those behind it.
func checkLength(stated string, body, section int) *Error {
	if stated == "" {
		return nil
	}
	if n, _ := strconv.Atoi(stated); n < body || n > section {
		return &Error{Kind: BadLength, What: "a length of " + stated + " is stated, and the body has " + strconv.Itoa(body)}
	}
	return nil
}

// checkID compares the Content-ID of a part with those before it. In its MIME
// header it counts first.
func (p *parser) checkID(id string) *Error {
	if p.mimeID != "" {
		id = p.mimeID
	}
	if id == "" {
		return nil
	}
	if slices.Contains(p.ids, id) {
		return &Error{Kind: BadHeader, What: "the Content-ID " + quote(id) + " stands a second time"}
	}
	p.ids = append(p.ids, id)
	return nil
}
