package batch

// MaxOperations is the most operations that Parse returns: one more than a batch may
// have, so that what there is too much of can be named. What follows it is not
// looked at.
const MaxOperations = 101

// Request is a batch taken apart.
type Request struct {
	// Operations are the operations, one at least.
	Operations []Operation
	// Changeset says that they stand in a changeset. Else there is one, a GET.
	Changeset bool
}

// Operation is one operation. Its texts own their memory, which other parts may share;
// Body shares that of the batch.
type Operation struct {
	Method    string // of a token's characters
	Target    string // a URL or an absolute path, without control characters
	ContentID string // in Header; "" if there is none
	Header    Header
	Body      []byte // without the blanks and line ends around it; nil if nothing is left
}

// Parse takes the body of a batch apart, whose Content-Type is contentType. Lines
// may end in LF or CRLF; empty lines around headers and bodies, what stands before
// the first boundary and behind the last, and Content-Length and Content-ID are
// as the client likes. The Batch shares body. Any failure is an *Error.
//
// Time and memory are bounded by a multiple of the length of body.
func Parse(contentType string, body []byte) (Request, error) {
	p := parser{bytes: len(body), fields: make(Header, 0, 16)}
	changeset, err := p.envelope(contentType, body)
	if err != nil {
		return Request{}, err
	}
	if p.wrong != nil {
		return Request{}, p.wrong
	}
	b := Request{Operations: p.parts, Changeset: changeset}
	for i := range p.parts {
		if isQuery := p.parts[i].Method == "GET"; isQuery && changeset {
			return Request{}, &Error{Misplaced, i, "a query stands in a changeset, where only changes do"}
		} else if !isQuery && !changeset {
			return Request{}, &Error{Misplaced, i, "a change stands outside a changeset"}
		}
	}
	return b, nil
}

// fail refuses the batch where the next operation should begin.
func (p *parser) fail(kind Kind, what string) error { return &Error{kind, len(p.parts), what} }

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
	s := newSections(text, boundary)
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
		if len(p.parts) == MaxOperations {
			return true, nil
		}
	}
}
