package odata

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
)

// MaxNames limits the distinct names of members in the JSON of an entity. A property
// and its annotation count once; nulls and metadata count too. The limit is far above
// the number of properties that an entity can store.
const MaxNames = 1024

// ParseOptions selects the members that hold the key. The zero ParseOptions require
// both keys under their usual names.
type ParseOptions struct {
	PartitionKey string // the member that holds the PartitionKey; default "PartitionKey"
	RowKey       string // the member that holds the RowKey; default "RowKey"
	// IgnoreKeys skips both keys, whatever their values, because the caller gets them
	// from elsewhere.
	IgnoreKeys bool
	// Exact refuses an integer without an annotation that neither an Int32 nor a Double
	// holds exactly, and what ParseExact refuses. The defaults are the service's rules: the
	// integer becomes the nearest Double, and digits of a DateTime are cut.
	Exact bool
	// Azurite accepts a Guid also as the base64 of its text, as Azurite stores it, and cuts digits
	// of a DateTime with Exact too, because Azurite stores all that the service would cut.
	Azurite bool
}

// annotation is the suffix of members that give the type of a property; metadata is
// the prefix of members that are not properties.
const (
	annotation = "@odata.type"
	metadata   = "odata."
)

// member is a property and the values of its members.
type member struct {
	name     string
	value    token    // of kind tokenNone if only the annotation was found
	typ      edm.Type // the annotated type, 0 if there is none or it is unknown
	typed    bool     // has an annotation
	typeText token
}

// parser parses the JSON of an entity.
type parser struct {
	scanner
	members []member
	layout  layout
	index   map[string]int // of the names in members, if there are many
	scratch []byte
	memory  memory
}

var parserPool = sync.Pool{New: func() any { return new(parser) }}

// ParseEntity parses one entity from its JSON. It does not retain src. Every error
// is an *Error.
//
// The annotation of a property may precede or follow it. An annotated string may
// hold a number or a boolean. Without an annotation, an integer is an Int32, or a
// Double if it does not fit; other numbers are Doubles, strings are Strings.
// ParseEntity skips null properties, and Timestamp and metadata that hold no key.
//
// If several errors apply, an invalid value is reported before a missing key, and a
// DateTime out of range last. An OutOfRange error comes with an entity that holds all
// other properties.
func ParseEntity(src []byte, o ParseOptions) (edm.Entity, error) {
	p := parserPool.Get().(*parser)
	var e edm.Entity
	err := p.parse(&e, src, o)
	p.memory = memory{}
	parserPool.Put(p)
	return e, err
}

func (p *parser) parse(e *edm.Entity, src []byte, o ParseOptions) error {
	if o.PartitionKey == "" {
		o.PartitionKey = edm.PartitionKeyName
	}
	if o.RowKey == "" {
		o.RowKey = edm.RowKeyName
	}
	p.scanner = scanner{src: src}
	err := p.entity(e, &o)
	p.release()
	return err
}

// release drops references to the caller's memory, and scratch memory that an unusual
// entity made large.
func (p *parser) release() {
	const keepBytes = 64 << 10
	p.scanner = scanner{}
	clear(p.members)
	if clear(p.index); len(p.members) > 256 {
		p.index = nil
	}
	p.members = p.members[:0]
	if cap(p.scratch) > keepBytes {
		p.scratch = nil
	}
}

// entity parses the object. Its error is nil or an *Error.
func (p *parser) entity(e *edm.Entity, o *ParseOptions) error {
	p.layout.reset()
	for p.err == nil && (p.repeatMember() || p.member()) {
		continue
	}
	if p.next(); p.pos < len(p.src) {
		p.unexpected("the end of the JSON")
	}
	if p.err != nil {
		return p.err
	}
	return p.build(e, o)
}

// addMember adds a member without values. It builds the member in place, as properties
// builds a property: a copy of a struct that was just built waits for the stores before
// it, and 100 inserts need 6 % more CPU time with such copies (server, BenchmarkBatch).
func (p *parser) addMember(name string) {
	n := len(p.members)
	if n == cap(p.members) {
		p.members = slices.Grow(p.members, max(8, n))
	}
	p.members = p.members[:n+1] // release has cleared it
	p.members[n].name = name
}

// parseMemberValue parses the value of m.
func (p *parser) parseMemberValue(m *member, r role) {
	if r == roleIgnored {
		p.next()
		m.value.kind, m.value.start = tokenSkipped, p.pos
		p.skip(0)
	} else {
		m.value = p.value()
	}
	p.setErrorMember(m)
}

// nextMember consumes the brace or comma before a member, or the closing brace. It
// reports whether a member follows.
func (p *parser) nextMember() bool {
	if len(p.members) == 0 {
		p.expect('{', "an object")
		if p.next() == '}' {
			p.pos++
			return false
		}
		return p.err == nil
	}
	if p.next() == ',' {
		p.pos++
		return true
	}
	p.expect('}', "a comma or the end of the object")
	return false
}

// member parses one member. It reports whether there was one.
func (p *parser) member() bool {
	from := p.pos
	if !p.nextMember() {
		return false
	}
	if p.layout.skipped {
		p.restart()
		return true
	}
	if !p.layout.recording {
		p.layout.record()
	}
	t := p.name()
	if p.err != nil {
		return false
	}
	name := p.src[t.start:t.end]
	if t.escaped {
		p.scratch = appendUnescaped(p.scratch[:0], name)
		name = p.scratch
	}
	of, isType := bytes.CutSuffix(name, []byte(annotation))
	isType = isType && len(of) > 0
	if isType {
		name = of
	}
	i := p.find(name, t.start-1)
	if p.err != nil {
		return false
	}
	m := &p.members[i]
	if isType && m.typed || !isType && m.value.kind != tokenNone {
		p.fail(t.start-1, "duplicate member")
		p.err.Kind = Duplicate
		p.setErrorMember(m)
		return false
	}
	g := gap{name: m.name, member: i, role: roleValue}
	switch {
	case isType:
		p.parseType(m)
		p.setErrorMember(m)
		g.role, g.typ = roleType, m.typ
	case isMetadata(name) || m.name == edm.TimestampName:
		g.role = roleIgnored
	}
	if p.err == nil {
		p.layout.add(p.src[from:p.pos], g)
	}
	if g.role != roleType {
		p.parseMemberValue(m, g.role)
	}
	return true
}

// setErrorMember adds the name of m to the error, if there is one.
func (p *parser) setErrorMember(m *member) {
	if p.err != nil && m != nil {
		p.err.Member = shorten([]byte(m.name))
	}
}

// isMetadata reports whether name is not the name of a property, such as odata.etag
// or Name@odata.navigationLink.
func isMetadata(name []byte) bool {
	if i := bytes.IndexByte(name, '@'); i >= 0 {
		name = name[i+1:]
	}
	return bytes.HasPrefix(name, []byte(metadata))
}

// parseType parses the annotated type of m. An unknown type is an error only if m
// has a value.
func (p *parser) parseType(m *member) {
	t := p.value()
	if p.err != nil {
		return
	}
	if t.kind != tokenText {
		p.fail(t.start, "the type of a property is a string such as \"Edm.Int64\"")
		return
	}
	m.typed, m.typeText = true, t
	text := p.src[t.start:t.end]
	if t.escaped {
		p.scratch = appendUnescaped(p.scratch[:0], text)
		text = p.scratch
	}
	for typ := edm.TypeString; typ <= edm.TypeGuid; typ++ {
		if typ.String() == string(text) {
			m.typ = typ
			return
		}
	}
}

// build builds the entity from the members.
func (p *parser) build(e *edm.Entity, o *ParseOptions) error {
	outside, err := p.properties(o, e)
	if err == nil && !o.IgnoreKeys {
		err = p.keys(o, &e.Key)
	}
	if err == nil && outside != nil {
		err = outside
	}
	return err
}

// properties sets the properties of e. It skips values outside the range of their
// type and returns the error of the first of them as outside.
func (p *parser) properties(o *ParseOptions, e *edm.Entity) (outside *Error, err error) {
	count, size := 0, 0
	for i := range p.members {
		m := &p.members[i]
		if m.stored() && !isKey(m.name, o) {
			count++
			size += p.valueBytes(m)
		}
	}
	if count == 0 {
		return nil, nil
	}
	p.memory.reserve(count, size)
	from := len(p.memory.properties)
	list := p.memory.properties[from : from : from+count]
	for i := range p.members {
		m := &p.members[i]
		if !m.stored() || isKey(m.name, o) {
			continue
		}
		v, err := p.property(m, o)
		if err != nil && o.Azurite && m.typ == edm.TypeGuid {
			v, err = p.encodedGuid(m, err)
		}
		if err == nil && o.Exact {
			err = p.checkExact(m, v)
		}
		if rangeErr, ok := err.(*Error); ok && rangeErr.Kind == OutOfRange {
			if outside == nil {
				outside = rangeErr
			}
			continue
		}
		if err != nil {
			p.memory.properties = p.memory.properties[:from+len(list)] // Reset clears them
			return nil, err
		}
		n := len(list)
		list = list[:n+1]
		list[n].Name, list[n].Value = m.name, v
	}
	p.memory.properties = p.memory.properties[:from+len(list)]
	e.Properties = slices.Clip(list)
	return outside, nil
}

func isKey(name string, o *ParseOptions) bool { return name == o.PartitionKey || name == o.RowKey }

// stored reports whether m has a value to store.
func (m *member) stored() bool { return m.value.kind > tokenNull && m.value.kind < tokenSkipped }

// found reports whether the entity has m. It lacks the members of a layout that it skips.
func (m *member) found() bool { return m.typed || m.value.kind != tokenNone }

// valueBytes returns an upper bound for the bytes that the value of m needs outside
// its Value.
func (p *parser) valueBytes(m *member) int {
	switch {
	case m.value.kind != tokenText:
		return 0
	case m.typ == edm.TypeGuid:
		return 16
	case m.typ == edm.TypeBinary:
	case m.typed && m.typ != edm.TypeString, p.memory.reuse && !m.value.escaped:
		return 0
	}
	return m.value.end - m.value.start
}

// keys parses both keys.
func (p *parser) keys(o *ParseOptions, k *edm.Key) error {
	p.scratch = p.scratch[:0]
	var err error
	if p.scratch, err = p.appendKey(p.scratch, o.PartitionKey); err != nil {
		return err
	}
	n := len(p.scratch)
	if p.scratch, err = p.appendKey(p.scratch, o.RowKey); err != nil {
		return err
	}
	both := p.memory.text(p.scratch)
	k.Partition, k.Row = both[:n], both[n:]
	return nil
}

func (p *parser) appendKey(dst []byte, name string) ([]byte, error) {
	for i := range p.members {
		m := &p.members[i]
		if m.name != name {
			continue
		}
		value := p.keyValue(m)
		if value.kind <= tokenNull {
			continue
		}
		if value.kind != tokenText || m.typed && m.typ != edm.TypeString {
			return nil, p.newError(m, "a key is a string, without a type or of type Edm.String")
		}
		return p.appendText(dst, value), nil
	}
	return nil, &Error{Kind: MissingKey, Member: name, What: "it is missing"}
}

func (p *parser) appendText(dst []byte, t token) []byte {
	raw := p.src[t.start:t.end]
	if t.escaped {
		return appendUnescaped(dst, raw)
	}
	return append(dst, raw...)
}

// newError returns an error about the value of m.
func (p *parser) newError(m *member, what string) *Error {
	at := m.value.start
	if m.value.kind == tokenText {
		at--
	}
	return &Error{Kind: BadValue, Member: shorten([]byte(m.name)), Offset: at, What: what}
}

// property parses the value of m.
func (p *parser) property(m *member, o *ParseOptions) (edm.Value, error) {
	if m.typed && m.typ == 0 {
		t := m.typeText
		return edm.Value{}, &Error{
			Kind: BadValue, Member: shorten([]byte(m.name)), Offset: t.start - 1,
			What: "unknown type " + quote(p.src[t.start:t.end]) +
				", want Edm.String, Edm.Binary, Edm.Boolean, Edm.Int32, Edm.Int64, Edm.Double, Edm.DateTime or Edm.Guid",
		}
	}
	text := p.src[m.value.start:m.value.end]
	if m.value.kind == tokenText {
		return p.stringProperty(m, text, o)
	}
	t := m.typ
	if !m.typed {
		t = p.impliedType(m, text)
	}
	var ok bool
	switch {
	case t == edm.TypeBoolean:
		ok = m.value.kind == tokenTrue || m.value.kind == tokenFalse
	case t == edm.TypeInt32 || t == edm.TypeInt64:
		ok = m.value.kind == tokenInteger
	case t == edm.TypeDouble:
		ok = m.value.kind == tokenInteger || m.value.kind == tokenDecimal
	default:
		return edm.Value{}, p.newError(m, shorten(text)+" is not a string: "+textForms[t])
	}
	if !ok {
		return edm.Value{}, p.newError(m, shorten(text)+": "+textForms[t])
	}
	v, err := ParseValue(t, text)
	if err != nil {
		return v, p.newError(m, shorten(text)+": "+textForms[t])
	}
	return v, nil
}

// impliedType returns the type of a value that is not a string and has no annotation.
func (p *parser) impliedType(m *member, text []byte) edm.Type {
	switch m.value.kind {
	case tokenTrue, tokenFalse:
		return edm.TypeBoolean
	case tokenInteger:
		if n, ok := parseInteger(text); ok && n == int64(int32(n)) {
			return edm.TypeInt32
		}
	}
	return edm.TypeDouble
}

func (p *parser) stringProperty(m *member, text []byte, o *ParseOptions) (edm.Value, error) {
	memory := &p.memory.bytes
	from := len(*memory)
	switch {
	case !m.typed || m.typ == edm.TypeString:
		if p.memory.reuse && !m.value.escaped {
			return edm.StringBytes(text[:len(text):len(text)]), nil
		}
		*memory = p.appendText(*memory, m.value)
		return edm.StringBytes((*memory)[from:len(*memory):len(*memory)]), nil
	case m.value.escaped:
		p.scratch = appendUnescaped(p.scratch[:0], text)
		text = p.scratch
	}
	switch m.typ {
	case edm.TypeBinary:
		if decoded, ok := appendBinary(*memory, text); ok {
			*memory = decoded
			return edm.Binary(decoded[from:len(decoded):len(decoded)]), nil
		}
		return edm.Value{}, p.newError(m, quote(text)+": "+textForms[m.typ])
	case edm.TypeGuid:
		if hi, lo, ok := parseGuid(text); ok {
			*memory = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(*memory, hi), lo)
			return edm.GuidBytes((*memory)[from:]), nil
		}
	}
	v, err := ParseValue(m.typ, text)
	if err == nil && o.Exact && !o.Azurite {
		err = checkDigits(m.typ, text)
	}
	if err == nil {
		return v, nil
	}
	refusal := p.newError(m, err.Error())
	refusal.classify(text, err)
	return v, refusal
}

// encodedGuid returns the Guid whose text is encoded in base64, or refusal if m is none.
func (p *parser) encodedGuid(m *member, refusal error) (edm.Value, error) {
	text, ok := appendBinary(nil, p.src[m.value.start:m.value.end])
	if hi, lo, isGuid := parseGuid(text); ok && isGuid {
		return edm.GuidWords(hi, lo), nil
	}
	return edm.Value{}, refusal
}
