package odata

import (
	"encoding/base64"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// Level is how much the JSON of an entity tells beside its properties.
type Level uint8

// The levels.
const (
	None    Level = iota // values alone
	Minimal              // the ETag, and types that a value does not show
)

// Options say how an entity is written.
type Options struct {
	// Level is how much is written. The default is None.
	Level Level
	// ASCII escapes every character beyond ASCII, as the service does. The
	// default is UTF-8, which means the same and is shorter.
	ASCII bool
	// OmitETag leaves out the ETag, which is the Timestamp in other letters. The
	// default is to write it where the level does.
	OmitETag bool
}

// maxTicksText is the longest text of a Timestamp.
const maxTicksText = len("9999-12-31T23:59:59.9999999Z")

// AppendEntity appends row as one JSON object without white space: the ETag if
// the level has it, PartitionKey, RowKey, Timestamp, then the properties in
// stored order. It allocates nothing when dst has room and, in a key or a
// String, nothing has to be escaped.
func AppendEntity(dst []byte, row edm.Row, o Options) []byte {
	var buf [maxTicksText]byte
	stamp := row.Timestamp().AppendText(buf[:0])
	dst = append(dst, '{')
	if o.Level >= Minimal && !o.OmitETag {
		dst = append(dst, `"odata.etag":"W/\"datetime'`...)
		dst = appendPercent(dst, stamp)
		dst = append(dst, `'\"",`...)
	}
	dst = append(dst, `"PartitionKey":"`...)
	from := len(dst)
	dst = quoteTail(row.AppendPartition(dst), from, o.ASCII)
	dst = append(dst, `,"RowKey":"`...)
	from = len(dst)
	dst = quoteTail(row.AppendRow(dst), from, o.ASCII)
	dst = append(dst, `,"Timestamp":"`...)
	dst = append(dst, stamp...)
	dst = append(dst, '"')
	for i := range row.Len() {
		name, v := row.At(i)
		dst = appendProperty(dst, name, v, o)
	}
	return append(dst, '}')
}

// appendPercent appends the text of a time as it stands in an ETag.
func appendPercent(dst, stamp []byte) []byte {
	for _, c := range stamp {
		if c == ':' {
			dst = append(dst, "%3A"...)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendProperty appends a comma, the type if it has to be told, and the
// property. A null, which no stored row has, is left out.
func appendProperty(dst []byte, name string, v edm.Value, o Options) []byte {
	t := v.Type()
	if t == 0 {
		return dst
	}
	dst = append(dst, ',')
	if o.Level >= Minimal && tellsType(v) {
		dst = AppendText(dst, name, o.ASCII)
		dst = append(dst[:len(dst)-1], `@odata.type":"`...)
		dst = append(dst, t.String()...)
		dst = append(dst, '"', ',')
	}
	dst = AppendText(dst, name, o.ASCII)
	dst = append(dst, ':')
	switch t {
	case edm.TypeString:
		return AppendText(dst, v.Bytes(), o.ASCII)
	case edm.TypeBoolean:
		return strconv.AppendBool(dst, v.Bool())
	case edm.TypeInt32:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case edm.TypeDouble:
		if f := v.Double(); !special(f) {
			return AppendDouble(dst, f)
		}
	}
	return append(AppendValue(append(dst, '"'), v), '"')
}

// tellsType reports whether v needs an annotation: JSON shows the type of
// strings, booleans, Int32 and ordinary Doubles.
func tellsType(v edm.Value) bool {
	switch v.Type() {
	case edm.TypeString, edm.TypeBoolean, edm.TypeInt32:
		return false
	case edm.TypeDouble:
		return special(v.Double())
	}
	return true
}

func appendBase64(dst, b []byte) []byte { return base64.StdEncoding.AppendEncode(dst, b) }

func appendGuid(dst []byte, hi, lo uint64) []byte {
	dst = appendHex(dst, hi>>32, 8)
	dst = appendHex(append(dst, '-'), hi>>16, 4)
	dst = appendHex(append(dst, '-'), hi, 4)
	dst = appendHex(append(dst, '-'), lo>>48, 4)
	return appendHex(append(dst, '-'), lo, 12)
}

// appendHex appends the lowest n hexadecimal digits of w.
func appendHex(dst []byte, w uint64, n int) []byte {
	for shift := 4 * (n - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[w>>shift&15])
	}
	return dst
}

// appendBinary appends the bytes that base64 text stands for.
func appendBinary(dst, text []byte) ([]byte, error) {
	return base64.StdEncoding.AppendDecode(dst, text)
}
