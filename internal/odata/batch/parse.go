package batch

// MaxOperations limits the operations that Parse returns. It is one more than a batch
// may have, so that the caller can report the excess. Parse ignores the rest.
const MaxOperations = 101

// Request is a parsed batch.
type Request struct {
	// Operations is empty only for an empty changeset.
	Operations []Operation
	// Changeset reports whether the operations are inside a changeset. Otherwise
	// there is one operation, a GET.
	Changeset bool
}

// Operation is one operation of a batch. Its strings may share memory with those of
// other operations, but not with the batch; Body shares the memory of the batch.
type Operation struct {
	Method    string // a token
	Target    string // a URL or an absolute path, without control characters
	ContentID string // the Content-ID in Header, or ""
	Header    Header
	Body      []byte // without surrounding blanks and line ends; nil if empty
}

// Parse parses the body of a batch with the given Content-Type. Lines may end in LF or
// CRLF. Empty lines around headers and bodies, text before the first boundary and
// after the last, Content-Length, Content-ID, the line end after a body that is an object,
// and the dashes after the last boundary of the batch are optional. The Request shares the
// memory of body. Every error is an *Error.
//
// Time and memory are linear in the length of body.
func Parse(contentType string, body []byte) (Request, error) {
	p := parser{bytes: len(body), fields: make(Header, 0, 16)}
	changeset, err := p.envelope(contentType, body)
	if err != nil {
		return Request{}, err
	}
	if p.err != nil {
		return Request{}, p.err
	}
	b := Request{Operations: p.operations, Changeset: changeset}
	for i := range p.operations {
		if isQuery := p.operations[i].Method == "GET"; isQuery && changeset {
			return Request{}, &Error{Misplaced, i, "a query in a changeset"}
		} else if !isQuery && !changeset {
			return Request{}, &Error{Misplaced, i, "a change outside a changeset"}
		}
	}
	return b, nil
}

// fail returns an error at the next operation.
func (p *parser) fail(kind Kind, what string) error { return &Error{kind, len(p.operations), what} }

// envelope parses the outer envelope.
func (p *parser) envelope(contentType string, body []byte) (changeset bool, err error) {
	outer, first, err := p.open(contentType, body, "the batch")
	if err != nil {
		return false, err
	}
	if first == closingLine {
		return false, p.fail(Empty, "the batch has no operation")
	}
	section, end := outer.next()
	if end == noDelimiter {
		return false, p.fail(Unterminated, "the batch does not end with its closing boundary")
	}
	mime, content := cutHeader(skipEmpty(section))
	if len(mime) > maxHeaderBytes {
		return false, p.fail(BadHeader, tooLong)
	}
	fields, wrong := appendFields(nil, string(mime))
	if wrong != "" {
		return false, p.fail(BadHeader, wrong)
	}
	contentType = fields.Get("Content-Type")
	if name, _ := cutMediaType(contentType); equalFold(name, multipartMixed) {
		inner, first, err := p.open(contentType, content, "the changeset")
		if err != nil {
			return false, err
		}
		if first == boundaryLine {
			if full, err := p.changeset(inner); full || err != nil {
				return true, err
			}
		}
		changeset = true
	} else if err := p.add(section); err != nil {
		return false, err
	}
	// The Rust and C++ clients end a batch with a boundary that is not the closing one.
	if end == closingLine || trimBlank(outer.rest) == nil {
		return changeset, nil
	}
	return false, p.fail(Misplaced, "more than one changeset or query")
}

const (
	multipartMixed = "multipart/mixed"
	operationType  = "application/http"
)

// open returns the sections of an envelope, starting after its first boundary, and the
// kind of that boundary. In an empty envelope it is the closing one.
func (p *parser) open(contentType string, text []byte, of string) (s *sections, first delimiter, err error) {
	name, parameters := cutMediaType(contentType)
	if !equalFold(name, multipartMixed) {
		return nil, 0, p.fail(BadType, of+" has type "+quote(name)+", want "+multipartMixed)
	}
	boundary, wrong := boundaryParameter(parameters)
	if wrong != "" {
		return nil, 0, p.fail(BadBoundary, of+": "+wrong)
	}
	s = newSections(text, boundary)
	if _, first = s.next(); first == noDelimiter {
		return nil, 0, p.fail(Unterminated, of+" does not contain its boundary "+quote(boundary))
	}
	return s, first, nil
}

// changeset parses the operations of a changeset. It reports full if it stopped at
// MaxOperations.
func (p *parser) changeset(s *sections) (full bool, err error) {
	for {
		section, end := s.next()
		if end == noDelimiter {
			return false, p.fail(Unterminated, "the changeset does not end with its closing boundary")
		}
		if len(p.operations) == 0 && end == closingLine && len(skipEmpty(section)) == 0 {
			return false, p.fail(Blank, "the only part of the changeset has no content")
		}
		if err := p.add(section); err != nil {
			return false, err
		}
		if end == closingLine {
			return false, nil
		}
		if len(p.operations) == MaxOperations {
			return true, nil
		}
	}
}
