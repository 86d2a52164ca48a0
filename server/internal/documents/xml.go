package documents

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxDocumentBytes is the length of the longest document that is accepted.
const maxDocumentBytes = 64 << 10

// Error refuses a document that is not XML, or whose content is not valid. The protocol has
// one code for both.
type Error struct{ What string }

// Error describes what is wrong with the document.
func (e *Error) Error() string { return "invalid document: " + e.What }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

const byteOrderMark = "\ufeff"

// reader is a recursive descent parser of documents. The code for an element reads its
// children, so an unknown element ends the parse, however deep it is. Only the five
// entities of XML are expanded; a document type is refused.
type reader struct{ d *xml.Decoder }

// field is an element that its parent has at most once.
type field struct {
	name     string
	optional bool
	read     func(*reader) error
}

// readDocument parses doc, whose root element must have the name root. It calls visit,
// which must read all of the root.
func readDocument(doc []byte, root string, visit func(*reader) error) error {
	if len(doc) > maxDocumentBytes {
		return refuse("%d bytes, at most %d are accepted", len(doc), maxDocumentBytes)
	}
	r := &reader{xml.NewDecoder(bytes.NewReader(doc))}
	t, err := r.d.Token()
	// Only the first token may be a declaration; encoding/xml checks its text.
	if p, ok := t.(xml.ProcInst); ok && p.Target == "xml" {
		t, err = r.d.Token()
	}
	for ; ; t, err = r.d.Token() {
		if err != nil {
			return refuse("%v", err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			if err := ignorable(t); err != nil {
				return err
			}
			continue
		}
		if nameOf(start) != root {
			return refuse("the document is %q, not %s", start.Name.Local, root)
		}
		if err := visit(r); err != nil {
			return err
		}
		return r.end()
	}
}

// end checks that nothing follows the root.
func (r *reader) end() error {
	for {
		t, err := r.d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return refuse("%v", err)
		}
		if err := ignorable(t); err != nil {
			return err
		}
	}
}

// ignorable returns nil for a comment or space between elements.
func ignorable(t xml.Token) error {
	switch t := t.(type) {
	case xml.Comment:
		return nil
	case xml.CharData:
		if trimSpace(string(t)) == "" {
			return nil
		}
		return refuse("text between elements")
	case xml.Directive:
		return refuse("a document type")
	case xml.ProcInst:
		return refuse("a processing instruction")
	}
	return refuse("an element in the wrong position")
}

// nameOf returns the name of an element, "" if it has a namespace: the service uses none.
func nameOf(e xml.StartElement) string {
	if e.Name.Space != "" {
		return ""
	}
	return e.Name.Local
}

// next returns the name of the next child of the open element, "" at its end.
func (r *reader) next() (string, error) {
	for {
		t, err := r.d.Token()
		if err != nil {
			return "", refuse("%v", err)
		}
		switch t := t.(type) {
		case xml.EndElement:
			return "", nil
		case xml.StartElement:
			if name := nameOf(t); name != "" {
				return name, nil
			}
			return "", refuse("the element %q has a namespace", t.Name.Local)
		default:
			if err := ignorable(t); err != nil {
				return "", err
			}
		}
	}
}

// fields reads the open element, whose children may be in any order.
func (r *reader) fields(fields ...field) error {
	seen := make([]bool, len(fields))
	for {
		name, err := r.next()
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			return refuse("the unknown element %q", name)
		}
		if seen[i] {
			return refuse("two elements %s", name)
		}
		seen[i] = true
		if err := fields[i].read(r); err != nil {
			return err
		}
	}
	for i, f := range fields {
		if !f.optional && !seen[i] {
			return refuse("%s is missing", f.name)
		}
	}
	return nil
}

// list reads the open element, whose children are at most limit elements called name.
func (r *reader) list(name string, limit int, read func(*reader) error) error {
	for n := 0; ; n++ {
		got, err := r.next()
		if err != nil || got == "" {
			return err
		}
		if got != name {
			return refuse("the unknown element %q", got)
		}
		if n == limit {
			return refuse("more than %d elements %s", limit, name)
		}
		if err := read(r); err != nil {
			return err
		}
	}
}

// text returns the text of the open element.
func (r *reader) text() (string, error) {
	var text []byte
	for {
		t, err := r.d.Token()
		if err != nil {
			return "", refuse("%v", err)
		}
		switch t := t.(type) {
		case xml.EndElement:
			return string(text), nil
		case xml.CharData:
			text = append(text, t...)
		case xml.Comment:
		default:
			return "", refuse("an element that must have only text has more")
		}
	}
}

// textField is an element with text. set gets the text without the space around it.
func textField(name string, set func(string) error) field {
	return field{name: name, read: func(r *reader) error {
		s, err := r.text()
		if err != nil {
			return err
		}
		return set(trimSpace(s))
	}}
}

// flagField is an element with true or false, in any case.
func flagField(name string, to *bool) field {
	return textField(name, func(s string) error {
		*to = strings.EqualFold(s, "true")
		if !*to && !strings.EqualFold(s, "false") {
			return refuse("%s is not true or false", name)
		}
		return nil
	})
}

// numberField is an element with a number of decimal digits.
func numberField(name string, to *int) field {
	return textField(name, func(s string) error {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return refuse("%s is not a number from 0 to %d", name, 1<<31-1)
		}
		*to = int(n)
		return nil
	})
}

// structField is an element with other elements.
func structField(name string, fields ...field) field {
	return field{name: name, read: func(r *reader) error { return r.fields(fields...) }}
}

// orNone makes the element optional.
func (f field) orNone() field {
	f.optional = true
	return f
}

// trimSpace removes the white space of XML, which is less than that of Unicode.
func trimSpace(s string) string { return strings.Trim(s, " \t\r\n") }

const declaration = byteOrderMark + `<?xml version="1.0" encoding="utf-8"?>`

func appendStart(dst []byte, name string) []byte {
	return append(append(append(dst, '<'), name...), '>')
}

func appendEnd(dst []byte, name string) []byte {
	return append(append(append(dst, "</"...), name...), '>')
}

func appendEmpty(dst []byte, name string) []byte {
	return append(append(append(dst, '<'), name...), " />"...)
}

// appendText appends an element with text.
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return appendEmpty(dst, name)
	}
	return appendEnd(appendEscaped(appendStart(dst, name), text), name)
}

func appendFlag(dst []byte, name string, v bool) []byte {
	return appendText(dst, name, strconv.FormatBool(v))
}

// appendEscaped appends text and escapes what a parser would change: it would read a bare
// carriage return as a line feed.
func appendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '&':
			dst = append(dst, "&amp;"...)
		case '\r':
			dst = append(dst, "&#xD;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
