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

// MaxDocumentBytes is the longest document that is read.
const MaxDocumentBytes = 64 << 10

// Error is the refusal of a document, whether it is no XML or breaks a rule of
// what it says: the protocol has one code for both.
type Error struct{ What string }

// Error says what is wrong with the document.
func (e *Error) Error() string { return "not a document of the service: " + e.What }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

const byteOrderMark = "\ufeff"

// reader walks a document in step with what may stand in it: each element is
// asked for by the code that reads its parent, so one that nobody knows ends the
// walk, however deep it goes on. Nothing is expanded but the five entities of
// XML; a document type is refused.
type reader struct{ d *xml.Decoder }

// field is an element that may stand once in its parent.
type field struct {
	name     string
	optional bool
	read     func(*reader) error
}

// readDocument calls visit inside the element root of doc, which is to read all
// that stands in it.
func readDocument(doc []byte, root string, visit func(*reader) error) error {
	if len(doc) > MaxDocumentBytes {
		return refuse("%d bytes, and at most %d are read", len(doc), MaxDocumentBytes)
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

// end wants the document to have nothing more.
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

// ignorable returns nil for what means nothing between elements.
func ignorable(t xml.Token) error {
	switch t := t.(type) {
	case xml.Comment:
		return nil
	case xml.CharData:
		if trimSpace(string(t)) == "" {
			return nil
		}
		return refuse("text where only elements stand")
	case xml.Directive:
		return refuse("a document type")
	case xml.ProcInst:
		return refuse("a processing instruction")
	}
	return refuse("an element out of place")
}

// nameOf returns the name of an element, "" for one of a namespace: the service
// has none.
func nameOf(e xml.StartElement) string {
	if e.Name.Space != "" {
		return ""
	}
	return e.Name.Local
}

// next returns the name of the next element within the open one, "" at its end.
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
			return "", refuse("the element %q of a namespace", t.Name.Local)
		default:
			if err := ignorable(t); err != nil {
				return "", err
			}
		}
	}
}

// fields reads the open element, whose parts may stand in any order.
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
			return refuse("%s stands twice", name)
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

// list reads the open element, which holds at most limit elements called name.
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
			return refuse("more than %d of %s", limit, name)
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
			return "", refuse("more than text where only text stands")
		}
	}
}

// textField is an element whose text, without the space around it, set takes.
func textField(name string, set func(string) error) field {
	return field{name: name, read: func(r *reader) error {
		s, err := r.text()
		if err != nil {
			return err
		}
		return set(trimSpace(s))
	}}
}

// flagField is an element that says true or false, in any case of letters.
func flagField(name string, to *bool) field {
	return textField(name, func(s string) error {
		*to = strings.EqualFold(s, "true")
		if !*to && !strings.EqualFold(s, "false") {
			return refuse("%s is neither true nor false", name)
		}
		return nil
	})
}

// numberField is an element that says a number from 0 up, in digits alone.
func numberField(name string, to *int) field {
	return textField(name, func(s string) error {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return refuse("%s is no number from 0 to %d", name, 1<<31-1)
		}
		*to = int(n)
		return nil
	})
}

// structField is an element that holds others.
func structField(name string, fields ...field) field {
	return field{name: name, read: func(r *reader) error { return r.fields(fields...) }}
}

func (f field) orNone() field {
	f.optional = true
	return f
}

// trimSpace removes what XML calls space, and no more of what Unicode does.
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

// appendText appends an element that holds text.
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return appendEmpty(dst, name)
	}
	return appendEnd(appendEscaped(appendStart(dst, name), text), name)
}

func appendFlag(dst []byte, name string, v bool) []byte {
	return appendText(dst, name, strconv.FormatBool(v))
}

// appendEscaped appends text so that a reader finds it as it is. A bare carriage
// return would be read as the end of a line.
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
