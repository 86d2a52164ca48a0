package odata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
)

// MaxNames is the most members with different names that the JSON of an entity
// may have, where a property and its annotation count once. It is far above
// what an entity can keep; nulls and metadata count here, and not there.
const MaxNames = 1024

// ParseOptions say where the key is. The zero ParseOptions demand both keys
// under their usual names.
type ParseOptions struct {
	PartitionKey string // the member that is the PartitionKey; default that name
	RowKey       string // the member that is the RowKey; default that name
	// IgnoreKeys leaves out both keys, whatever their members are, since they
	// stand somewhere else.
	IgnoreKeys bool
}

// annotation ends the name of a member that tells a property's type, and
// metadata begins one that is none of the entity.
const (
	annotation = "@odata.type"
	metadata   = "odata."
)

// member is a property with what its members say.
type member struct {
	name     string
	value    token    // kind tokenNone while only the annotation is there
	typ      edm.Type // of the annotation, 0 if there is none or it is unknown
	typed    bool     // there is an annotation
	typeText token
}

// parser takes the JSON of an entity apart. What it learns of names serves the
// next entity, which often has the same in the same order.
type parser struct {
	scanner
	members []member
	steps   steps
	names   nameSet
	scratch []byte
	memory  memory
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// ParseEntity reads one entity from its JSON, which is the caller's again when
// ParseEntity returns. Any failure is an *Error.
//
// A property's annotation stands before or after it. An annotated string may
// hold a number or a boolean. Without annotation a whole number is an Int32, or
// a Double if it does not fit; other numbers are Doubles, strings are Strings.
// Properties that are null, Timestamp and members of metadata are left out.
//
// A key that is not there is refused after values that are none of their types, and
// a DateTime out of range last: with that refusal comes what else the entity has.
func ParseEntity(src []byte, o ParseOptions) (edm.Entity, error) {
	p := parsers.Get().(*parser)
	e, err := p.parse(src, o)
	p.memory = memory{}
	parsers.Put(p)
	return e, err
}

func (p *parser) parse(src []byte, o ParseOptions) (edm.Entity, error) {
	if o.PartitionKey == "" {
		o.PartitionKey = edm.PartitionKeyName
	}
	if o.RowKey == "" {
		o.RowKey = edm.RowKeyName
	}
	p.scanner = scanner{src: src}
	e, err := p.entity(&o)
	p.names.forget()
	p.forget()
	return e, err
}

// forget lets go of the caller's memory, and of its own where a rare entity made
// it large.
func (p *parser) forget() {
	const keepBytes = 64 << 10
	p.scanner = scanner{}
	clear(p.members)
	p.members = p.members[:0]
	if cap(p.scratch) > keepBytes {
		p.scratch = nil
	}
}

// entity returns an error that is nil or an *Error.
func (p *parser) entity(o *ParseOptions) (edm.Entity, error) {
	p.names.entity++
	p.steps.start()
	for p.err == nil && (p.again() || p.member()) {
		continue
	}
	if p.next(); p.pos < len(p.src) {
		p.unexpected("the end of the JSON")
	}
	if p.err != nil {
		return edm.Entity{}, p.err
	}
	return p.build(o)
}

// again takes a member that is as in the entity before up to its value, and reports
// whether there was one.
func (p *parser) again() bool {
	st := p.steps.next(p.src[p.pos:])
	if st == nil {
		return false
	}
	p.pos += st.end - st.begin
	if st.member == len(p.members) {
		p.members = append(p.members, member{name: st.name})
	}
	m := &p.members[st.member]
	if st.means == meansType {
		m.typed, m.typ = true, st.typ
		return true
	}
	p.take(m, st.means)
	return true
}

// take takes the value of m.
func (p *parser) take(m *member, as meaning) {
	if as == meansNothing {
		p.skip(0)
		m.value.kind = tokenSkipped
	} else {
		m.value = p.value()
	}
	p.blame(m)
}

// another takes what stands before a member, and reports whether there is one.
func (p *parser) another() bool {
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

// member takes one member, and reports whether there was one.
func (p *parser) member() bool {
	from := p.pos
	if !p.another() {
		return false
	}
	if !p.steps.diverged {
		p.steps.diverge()
		for i := range p.members {
			p.names.see(p.members[i].name, i)
		}
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
		p.fail(t.start-1, "it stands a second time")
		p.err.Kind = Duplicate
		p.blame(m)
		return false
	}
	st := step{name: m.name, member: i, means: meansValue}
	switch {
	case isType:
		p.annotate(m)
		p.blame(m)
		st.means, st.typ = meansType, m.typ
	case isMetadata(name) || m.name == edm.TimestampName:
		st.means = meansNothing
	}
	if p.err == nil {
		p.steps.add(p.src[from:p.pos], st)
	}
	if st.means != meansType {
		p.take(m, st.means)
	}
	return true
}

// blame names the member in a failure.
func (p *parser) blame(m *member) {
	if p.err != nil && m != nil {
		p.err.Member = shorten([]byte(m.name))
	}
}

// isMetadata reports whether name is none of a property: odata.etag,
// Name@odata.navigationLink.
func isMetadata(name []byte) bool {
	if i := bytes.IndexByte(name, '@'); i >= 0 {
		name = name[i+1:]
	}
	return bytes.HasPrefix(name, []byte(metadata))
}

// find returns the index of the member of that name, new if it is not there yet.
func (p *parser) find(name []byte, at int) int {
	n := len(p.members)
	if n > 0 && p.members[n-1].name == string(name) {
		return n - 1
	}
	i, text := p.names.find(n, name)
	if i >= 0 {
		return i
	}
	if n == MaxNames {
		p.fail(at, "more than "+strconv.Itoa(MaxNames)+" members")
		p.err.Kind = TooManyNames
		return n
	}
	p.members = append(p.members, member{name: text})
	return n
}

// annotate takes the type of m. An unknown one matters only if m has a value.
func (p *parser) annotate(m *member) {
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

// build makes the entity of the members.
func (p *parser) build(o *ParseOptions) (e edm.Entity, err error) {
	outside, err := p.properties(o, &e)
	if err == nil && !o.IgnoreKeys {
		err = p.keys(o, &e.Key)
	}
	if err == nil && outside != nil {
		err = outside
	}
	return e, err
}

// properties gives e its properties, without those that are outside the range of
// their type: the first of these is returned.
func (p *parser) properties(o *ParseOptions, e *edm.Entity) (outside *Error, err error) {
	count, room := 0, 0
	for i := range p.members {
		m := &p.members[i]
		if m.kept() && !isKey(m.name, o) {
			count++
			room += p.room(m)
		}
	}
	if count == 0 {
		return nil, nil
	}
	p.memory.reserve(count, room)
	from := len(p.memory.properties)
	for i := range p.members {
		m := &p.members[i]
		if !m.kept() || isKey(m.name, o) {
			continue
		}
		v, err := p.property(m)
		if refusal, ok := err.(*Error); ok && refusal.Kind == OutOfRange {
			if outside == nil {
				outside = refusal
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		p.memory.properties = append(p.memory.properties, edm.Property{Name: m.name, Value: v})
	}
	e.Properties = p.memory.properties[from:len(p.memory.properties):len(p.memory.properties)]
	return outside, nil
}

func isKey(name string, o *ParseOptions) bool { return name == o.PartitionKey || name == o.RowKey }

// kept reports whether m has a value to store.
func (m *member) kept() bool { return m.value.kind > tokenNull && m.value.kind < tokenSkipped }

// room returns how many bytes the value of m takes at most beside its Value.
func (p *parser) room(m *member) int {
	switch {
	case m.value.kind != tokenText:
		return 0
	case m.typ == edm.TypeGuid:
		return 16
	case m.typ == edm.TypeBinary:
	case m.typed && m.typ != edm.TypeString, p.memory.again && !m.value.escaped:
		return 0
	}
	return m.value.end - m.value.start
}

// keys reads both keys.
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
		if m.name != name || m.value.kind <= tokenNull {
			continue
		}
		if m.value.kind != tokenText || m.typed && m.typ != edm.TypeString {
			return nil, p.wrong(m, BadValue, "a key is a string without a type or of Edm.String")
		}
		return p.appendText(dst, m.value), nil
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

func (p *parser) wrong(m *member, kind ErrorKind, what string) *Error {
	at := m.value.start
	if m.value.kind == tokenText {
		at--
	}
	return &Error{Kind: kind, Member: shorten([]byte(m.name)), Offset: at, What: what}
}

// property returns the value of m.
func (p *parser) property(m *member) (edm.Value, error) {
	if m.typed && m.typ == 0 {
		t := m.typeText
		return edm.Value{}, &Error{
			Kind: BadValue, Member: shorten([]byte(m.name)), Offset: t.start - 1,
			What: "its type is " + quote(p.src[t.start:t.end]) + "; there are Edm.String, Binary, Boolean, Int32, Int64, Double, DateTime and Guid",
		}
	}
	text := p.src[m.value.start:m.value.end]
	if m.value.kind == tokenText {
		return p.textProperty(m, text)
	}
	t, ok := m.typ, true
	if !m.typed {
		t = p.natural(m, text)
	}
	switch {
	case t == edm.TypeBoolean:
		ok = m.value.kind == tokenTrue || m.value.kind == tokenFalse
	case t == edm.TypeInt32 || t == edm.TypeInt64:
		ok = m.value.kind == tokenInteger
	case t == edm.TypeDouble:
		ok = m.value.kind == tokenInteger || m.value.kind == tokenDecimal
	default:
		return edm.Value{}, p.wrong(m, BadValue, shorten(text)+" is no string: "+demands[t])
	}
	if !ok {
		return edm.Value{}, p.wrong(m, BadValue, shorten(text)+": "+demands[t])
	}
	v, err := ParseValue(t, text)
	if err != nil {
		return v, p.wrong(m, BadValue, shorten(text)+": "+demands[t])
	}
	return v, nil
}

// natural returns the type of a value that is no text and has no annotation.
func (p *parser) natural(m *member, text []byte) edm.Type {
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

func (p *parser) textProperty(m *member, text []byte) (edm.Value, error) {
	memory := &p.memory.bytes
	from := len(*memory)
	switch {
	case !m.typed || m.typ == edm.TypeString:
		if p.memory.again && !m.value.escaped {
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
		return edm.Value{}, p.wrong(m, BadValue, quote(text)+": "+demands[m.typ])
	case edm.TypeGuid:
		if hi, lo, ok := parseGuid(text); ok {
			*memory = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(*memory, hi), lo)
			return edm.GuidBytes((*memory)[from:]), nil
		}
	}
	v, err := ParseValue(m.typ, text)
	if err == nil {
		return v, nil
	}
	refusal := p.wrong(m, BadValue, err.Error())
	if t := (*textError)(nil); errors.As(err, &t) && t.outside {
		refusal.Kind = OutOfRange
		refusal.Got = fmt.Sprintf("%s/%s/%s %s", text[5:7], text[8:10], text[:4], text[11:19])
	}
	return v, refusal
}
