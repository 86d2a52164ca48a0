package odata

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// Level selects the metadata in the JSON of an entity.
type Level uint8

// The levels.
const (
	None    Level = iota // no metadata
	Minimal              // the ETag, and types that the JSON value does not show
	Full                 // also the type and links of the entity, and the type of Timestamp
)

// Options controls the encoding of entities and tables.
type Options struct {
	// Level is the metadata level. The default is None.
	Level Level
	// ASCII escapes every character beyond ASCII, like the service. The default
	// is UTF-8, which is equivalent and shorter.
	ASCII bool
	// OmitETag omits the ETag, which repeats the Timestamp. The default is to write
	// it at the levels that include it.
	OmitETag bool
	// Metadata is the URL of odata.metadata, the first member at level Minimal and
	// above. The default, "", omits it; entities in a feed have none.
	Metadata string
	// Account, Base and Table form the types and links of level Full: the name of
	// the account, its URL as the client addressed it, without a trailing slash, and
	// the name of the table, which AppendTable does not use. They have no default;
	// lower levels do not use them.
	Account, Base, Table string
	// Select lists the members to write besides metadata, without duplicates. A
	// member that the entity does not have is written as null. PartitionKey, RowKey
	// and Timestamp come first, the others in the order of Select. The default, nil,
	// is every member.
	Select []string
	// Names keeps the text of names for the next entities. With the default, nil, the text of
	// each name is made anew.
	Names *Names
}

// AppendFeed appends the start of a feed. The caller appends its items, separated by
// commas and encoded without Metadata, and then ]}.
func AppendFeed(dst []byte, o Options) []byte {
	dst = appendMetadata(append(dst, '{'), &o)
	return append(dst, `"value":[`...)
}

// appendMetadata appends odata.metadata and a comma if the level includes it.
func appendMetadata(dst []byte, o *Options) []byte {
	if o.Level < Minimal || o.Metadata == "" {
		return dst
	}
	dst = append(dst, `"odata.metadata":`...)
	return append(AppendText(dst, o.Metadata, o.ASCII), ',')
}

// appendTypeAndBase appends odata.type and the start of odata.id, up to the relative
// link. It returns the offset of that link.
func appendTypeAndBase(dst []byte, of string, o *Options) (out []byte, link int) {
	dst = append(dst, `"odata.type":"`...)
	dst = appendEscaped(dst, o.Account, o.ASCII)
	dst = append(dst, '.')
	dst = appendEscaped(dst, of, o.ASCII)
	dst = append(dst, `","odata.id":"`...)
	dst = append(appendEscaped(dst, o.Base, o.ASCII), '/')
	return dst, len(dst)
}

// maxTicksText is the length of the longest Timestamp.
const maxTicksText = len("9999-12-31T23:59:59.9999999Z")

// AppendEntity appends row as a JSON object without white space: the metadata of the
// level, PartitionKey, RowKey, Timestamp, then the properties in stored order. It
// does not allocate if dst has the capacity for the object and for a second copy of
// a key that needs escapes.
func AppendEntity(dst []byte, row edm.Row, o Options) []byte {
	var buf [maxTicksText]byte
	stamp := row.Timestamp().AppendText(buf[:0])
	dst = appendMetadata(append(dst, '{'), &o)
	linkFrom, linkTo := 0, 0
	if o.Level >= Full {
		dst, linkFrom = appendTypeAndBase(dst, o.Table, &o)
		dst = appendRowLink(dst, row, o.Table)
		linkTo = len(dst)
		dst = append(dst, '"', ',')
	}
	if o.Level >= Minimal && !o.OmitETag {
		dst = append(dst, `"odata.etag":"W/\"datetime'`...)
		dst = appendETagTime(dst, stamp)
		dst = append(dst, `'\"",`...)
	}
	if o.Level >= Full {
		dst = append(dst, `"odata.editLink":"`...)
		dst = append(dst, dst[linkFrom:linkTo]...)
		dst = append(dst, '"', ',')
	}
	if o.Select != nil {
		dst = appendSelected(dst, row, stamp, &o)
	} else {
		dst = appendPartition(dst, row, &o)
		dst = appendRow(dst, row, &o)
		dst = appendTimestamp(dst, stamp, &o)
		for i := range row.Len() {
			name, v := row.At(i)
			dst = appendProperty(dst, name, v, &o)
		}
	}
	return endObject(dst)
}

// endObject replaces the comma after the last member with the end of the object.
func endObject(dst []byte) []byte {
	if n := len(dst) - 1; dst[n] == ',' {
		dst = dst[:n]
	}
	return append(dst, '}')
}

// appendSelected appends the members in o.Select, each with a comma.
func appendSelected(dst []byte, row edm.Row, stamp []byte, o *Options) []byte {
	if slices.Contains(o.Select, edm.PartitionKeyName) {
		dst = appendPartition(dst, row, o)
	}
	if slices.Contains(o.Select, edm.RowKeyName) {
		dst = appendRow(dst, row, o)
	}
	if slices.Contains(o.Select, edm.TimestampName) {
		dst = appendTimestamp(dst, stamp, o)
	}
	for _, name := range o.Select {
		switch name {
		case edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName:
			continue
		}
		if v, ok := row.Lookup(name); ok && !v.IsNull() {
			dst = appendProperty(dst, name, v, o)
			continue
		}
		dst = AppendText(dst, name, o.ASCII)
		dst = append(dst, ":null,"...)
	}
	return dst
}

func appendPartition(dst []byte, row edm.Row, o *Options) []byte {
	dst = append(dst, `"PartitionKey":"`...)
	from := len(dst)
	return append(quoteTail(row.AppendPartition(dst), from, o.ASCII), ',')
}

func appendRow(dst []byte, row edm.Row, o *Options) []byte {
	dst = append(dst, `"RowKey":"`...)
	from := len(dst)
	return append(quoteTail(row.AppendRow(dst), from, o.ASCII), ',')
}

func appendTimestamp(dst, stamp []byte, o *Options) []byte {
	if o.Level >= Full {
		dst = append(dst, `"Timestamp@odata.type":"Edm.DateTime",`...)
	}
	dst = append(dst, `"Timestamp":"`...)
	return append(append(dst, stamp...), '"', ',')
}

// appendETagTime appends a time, YYYY-MM-DDThh:mm:ss and an optional fraction, in the
// percent-encoded form of an ETag.
func appendETagTime(dst, stamp []byte) []byte {
	dst = append(append(dst, stamp[:13]...), "%3A"...)
	dst = append(append(dst, stamp[14:16]...), "%3A"...)
	return append(dst, stamp[17:]...)
}

// appendProperty appends the type annotation if one is needed, the property, and a
// comma. It skips null, which no stored row has.
func appendProperty(dst []byte, name string, v edm.Value, o *Options) []byte {
	if v.Type() == 0 {
		return dst
	}
	annotated := edm.Type(0)
	if o.Level >= Minimal && needsAnnotation(v) {
		annotated = v.Type()
	}
	if o.Names != nil {
		dst = o.Names.appendName(dst, name, annotated, o.ASCII)
	} else {
		dst = appendName(dst, name, annotated, o.ASCII)
	}
	return append(appendJSON(dst, v, o.ASCII), ',')
}

// appendJSON appends v as JSON.
func appendJSON(dst []byte, v edm.Value, ascii bool) []byte {
	switch v.Type() {
	case edm.TypeString:
		return AppendText(dst, v.Bytes(), ascii)
	case edm.TypeBoolean:
		return strconv.AppendBool(dst, v.Word() != 0)
	case edm.TypeInt32:
		return strconv.AppendInt(dst, int64(v.Word()), 10)
	case edm.TypeDouble:
		if f := math.Float64frombits(v.Word()); !isNonFinite(f) {
			return AppendDouble(dst, f)
		}
	}
	return append(AppendValue(append(dst, '"'), v), '"')
}

// needsAnnotation reports whether v needs a type annotation. JSON shows the type of
// strings, booleans, Int32 and finite Doubles.
func needsAnnotation(v edm.Value) bool {
	switch v.Type() {
	case edm.TypeString, edm.TypeBoolean, edm.TypeInt32:
		return false
	case edm.TypeDouble:
		return isNonFinite(math.Float64frombits(v.Word()))
	}
	return true
}

// base64Text is the canonical encoding of Binary values.
var base64Text = base64.StdEncoding.Strict()

func appendBase64(dst, b []byte) []byte { return base64Text.AppendEncode(dst, b) }

// appendBinary appends the decoded bytes of text. It skips line breaks: the service does, and
// the Ruby client breaks lines after 60 characters.
func appendBinary(dst, text []byte) (out []byte, ok bool) {
	out, err := base64Text.AppendDecode(dst, text)
	return out, err == nil
}

func appendGuid(dst, guid []byte) []byte {
	var text [36]byte
	at := 0
	for i, c := range guid[:16] {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		text[at], text[at+1] = lowerHex[c>>4], lowerHex[c&15]
		at += 2
	}
	return append(dst, text[:]...)
}

const lowerHex = "0123456789abcdef"
