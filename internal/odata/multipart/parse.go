package multipart

import (
	"bytes"
	"strconv"
	"strings"
)

// MaxParts is the most operations that Parse returns: one more than a batch may
// have, so that what there is too much of can be named. What follows it is not
// looked at.
const MaxParts = 101

// Batch is a batch taken apart.
type Batch struct {
	// Parts are the operations, one at least.
	Parts []Part
	// Changeset says that they stand in a changeset. Else there is one, a GET.
	Changeset bool
}

// Part is one operation. Its texts own their memory; Body shares that of the
// batch.
type Part struct {
	Method    string // of a token's characters
	Target    string // a URL or an absolute path, without control characters
	ContentID string // of the part or of the operation; "" if there is none
	Header    Header // of the operation
	Body      []byte // without the blanks and line ends around it; nil if nothing is left
}

// parser gathers operations. Their heads, which are MIME header, request line
// and header, become one text.
type parser struct {
	raw []raw
}

// raw is a part as it stands in the body.
type raw struct{ mime, head, body []byte }

// Parse takes the body of a batch apart, whose Content-Type is contentType. Lines
// may end in LF or CRLF; empty lines around headers and bodies, what stands before
// the first boundary and behind the last, and Content-Length and Content-ID are
// as the client likes. The Batch shares body. Any failure is an *Error.
//
// Time and memory are bounded by a multiple of the length of body.
func Parse(contentType string, body []byte) (Batch, error) {
	p := parser{raw: make([]raw, 0, 8)}
	changeset, err := p.envelope(contentType, body)
	if err != nil {
		return Batch{}, err
	}
	parts, err := p.parts()
	if err != nil {
		return Batch{}, err
	}
	b := Batch{Parts: parts, Changeset: changeset}
	for i := range parts {
		if isQuery := parts[i].Method == "GET"; isQuery && changeset {
			return Batch{}, &Error{Misplaced, i, "a query stands in a changeset, where only changes do"}
		} else if !isQuery && !changeset {
			return Batch{}, &Error{Misplaced, i, "a change stands outside a changeset"}
		}
	}
	return b, nil
}

// fail refuses the batch where the next operation should begin.
func (p *parser) fail(kind Kind, what string) error { return &Error{kind, len(p.raw), what} }

// envelope finds the operations of the batch.
func (p *parser) envelope(contentType string, body []byte) (changeset bool, err error) {
	outer, err := p.open(contentType, body, "the batch")
	if err != nil {
		return false, err
	}
	section, end := outer.next()
	if end == none {
		return false, p.fail(Unended, "the batch does not end with its boundary")
	}
	mime, content := cutHead(skipEmpty(section))
	if len(mime) > maxHead {
		return false, p.fail(BadHeader, tooLong)
	}
	fields, wrong := appendFields(nil, string(mime))
	if wrong != "" {
		return false, p.fail(BadHeader, wrong)
	}
	contentType = fields.Get("Content-Type")
	if name, _ := cutMediaType(contentType); equalFold(name, multipartMixed) {
		inner, err := p.open(contentType, content, "the changeset")
		if err != nil {
			return false, err
		}
		if full, err := p.changeset(inner); full || err != nil {
			return true, err
		}
		changeset = true
	} else if err := p.add(section); err != nil {
		return false, err
	}
	if end == closing {
		return changeset, nil
	}
	return false, p.fail(Misplaced, "something stands beside the one changeset or query")
}

const (
	multipartMixed = "multipart/mixed"
	operationType  = "application/http"
)

// open returns the sections of an envelope, from its first boundary on.
func (p *parser) open(contentType string, text []byte, of string) (*sections, error) {
	name, parameters := cutMediaType(contentType)
	if !equalFold(name, multipartMixed) {
		return nil, p.fail(BadType, of+" is of type "+quote(name)+", and should be of "+multipartMixed)
	}
	boundary, wrong := boundaryOf(parameters)
	if wrong != "" {
		return nil, p.fail(BadBoundary, of+": "+wrong)
	}
	s := &sections{text, []byte(dashes + boundary)}
	switch _, end := s.next(); end {
	case none:
		return nil, p.fail(Unended, of+" does not have its boundary "+quote(boundary))
	case closing:
		return nil, p.fail(Empty, of+" has no operation")
	case between:
	}
	return s, nil
}

// changeset finds the operations of a changeset; full says that there may be
// more.
func (p *parser) changeset(s *sections) (full bool, err error) {
	for {
		section, end := s.next()
		if end == none {
			return false, p.fail(Unended, "the changeset does not end with its boundary")
		}
		if err := p.add(section); err != nil {
			return false, err
		}
		if end == closing {
			return false, nil
		}
		if len(p.raw) == MaxParts {
			return true, nil
		}
	}
}

// maxHead is the most bytes of one header, request line included.
const (
	maxHead = 64 << 10
	tooLong = "a header of more than 64 KiB"
)

// add takes one operation.
func (p *parser) add(section []byte) error {
	var r raw
	r.mime, r.body = cutHead(skipEmpty(section))
	r.head, r.body = cutHead(skipEmpty(r.body))
	if len(r.mime) > maxHead || len(r.head) > maxHead {
		return p.fail(BadHeader, tooLong)
	}
	p.raw = append(p.raw, r)
	return nil
}

// parts reads the heads of all operations.
func (p *parser) parts() ([]Part, error) {
	size, lines := 0, 0
	for _, r := range p.raw {
		size += len(r.mime) + len(r.head)
		lines += min(bytes.Count(r.mime, []byte{'\n'}), maxFields) + min(bytes.Count(r.head, []byte{'\n'}), maxFields)
	}
	var b strings.Builder
	b.Grow(size)
	for _, r := range p.raw {
		b.Write(r.mime)
		b.Write(r.head)
	}
	heads := b.String()
	parts := make([]Part, len(p.raw))
	fields := make(Header, 0, lines+2*len(p.raw))
	for i, r := range p.raw {
		mime, head := heads[:len(r.mime)], heads[len(r.mime):][:len(r.head)]
		heads = heads[len(mime)+len(head):]
		var err *Error
		if fields, err = parts[i].read(fields, mime, head, r.body); err == nil {
			err = checkID(parts[:i+1])
		}
		if err != nil {
			err.Part = i
			return nil, err
		}
	}
	return parts, nil
}

// read makes the part of its head and body, and returns fields with its own
// behind them.
func (p *Part) read(fields Header, mime, head string, body []byte) (Header, *Error) {
	from := len(fields)
	fields, wrong := appendFields(fields, mime)
	if wrong != "" {
		return fields, &Error{Kind: BadHeader, What: wrong}
	}
	if err := checkMIME(fields[from:]); err != nil {
		return fields, err
	}
	p.ContentID = fields[from:].Get(contentID)
	fields = fields[:from]
	line, head, _ := strings.Cut(head, "\n")
	if !p.request(strings.TrimSuffix(line, "\r")) {
		return fields, &Error{Kind: BadRequest, What: quote(line) + " stands where a request line as GET /path HTTP/1.1 should"}
	}
	if fields, wrong = appendFields(fields, head); wrong != "" {
		return fields, &Error{Kind: BadHeader, What: wrong}
	}
	p.Header = fields[from:len(fields):len(fields)]
	if id := p.Header.Get(contentID); p.ContentID == "" {
		p.ContentID = id
	}
	return fields, p.take(body)
}

const contentID = "Content-ID"

// checkMIME looks at the header of a part.
func checkMIME(h Header) *Error {
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

// checkID compares the Content-ID of the last part with those before it.
func checkID(parts []Part) *Error {
	id := parts[len(parts)-1].ContentID
	for i := range parts[:len(parts)-1] {
		if id != "" && parts[i].ContentID == id {
			return &Error{Kind: BadHeader, What: "the Content-ID " + quote(id) + " stands a second time"}
		}
	}
	return nil
}

// request reads the request line. A target may have blanks in it, as links in
// old documents do.
func (p *Part) request(line string) bool {
	method, rest, _ := strings.Cut(line, " ")
	i := strings.LastIndexByte(rest, ' ')
	if i < 0 || !isToken(method) || !isText(rest) || rest[i+1:] != "HTTP/1.1" && rest[i+1:] != "HTTP/1.0" {
		return false
	}
	p.Method, p.Target = method, strings.Trim(rest[:i], " ")
	return p.Target != ""
}

// take takes the body. A stated length counts from the body's first byte, empty
// lines before it included or not, to its last, or ends among those behind it.
func (p *Part) take(body []byte) *Error {
	p.Body = bytes.Trim(body, " \t\r\n")
	if p.Header.Count("Transfer-Encoding") > 0 {
		return &Error{Kind: BadHeader, What: "an operation has no Transfer-Encoding"}
	}
	switch p.Header.Count("Content-Length") {
	case 0:
		return nil
	case 1:
	default:
		return &Error{Kind: BadLength, What: "there are two lengths"}
	}
	text := p.Header.Get("Content-Length")
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return &Error{Kind: BadLength, What: quote(text) + " is no length"}
	}
	if n < uint64(len(p.Body)) || n > uint64(len(body)) {
		return &Error{Kind: BadLength, What: "a length of " + text + " is stated, and the body has " + strconv.Itoa(len(p.Body))}
	}
	return nil
}
