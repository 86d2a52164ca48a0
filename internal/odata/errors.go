package odata

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// ErrorKind classifies errors in the JSON of an entity. The protocol has an error
// code for each kind.
type ErrorKind uint8

// The kinds of Error.
const (
	Malformed    ErrorKind = iota + 1 // not a JSON object of scalar values
	Duplicate                         // a member occurs twice
	MissingKey                        // PartitionKey or RowKey is absent or null
	BadValue                          // a value does not match its type
	OutOfRange                        // a DateTime outside the years 1601 to 9999
	TooManyNames                      // more than MaxNames members
	MissingName                       // TableName is absent, null or empty
)

// Error is an error in the JSON of an entity. errors.Is(err, edm.ErrInvalid) holds.
type Error struct {
	Kind   ErrorKind
	Member string // the invalid member, shortened; "" for the object as a whole
	Offset int    // byte offset in the JSON
	What   string // what was found and what is valid
	Got    string // for OutOfRange, the time as MM/dd/yyyy HH:mm:ss; otherwise ""
}

// Error returns the member, the offset and What.
func (e *Error) Error() string {
	switch {
	case e.Kind == MissingKey:
		return e.Member + " is missing; every entity has one"
	case e.Kind == MissingName:
		return e.Member + " is missing or empty; every table has one"
	case e.Member == "":
		return fmt.Sprintf("offset %d: %s", e.Offset, e.What)
	}
	return fmt.Sprintf("member %q at offset %d: %s", e.Member, e.Offset, e.What)
}

// Is reports whether target is edm.ErrInvalid.
func (e *Error) Is(target error) bool { return target == edm.ErrInvalid }

// maxShown limits the input bytes that a message shows.
const maxShown = 64

// shorten truncates s to about maxShown bytes at a character boundary.
func shorten(s []byte) string {
	if len(s) <= maxShown {
		return string(s)
	}
	n := maxShown
	for n > maxShown-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return string(s[:n]) + "..."
}

// quote returns s shortened and quoted for a message.
func quote(s []byte) string { return strconv.Quote(shorten(s)) }

// textForms describes the valid text of each type.
var textForms = [...]string{
	edm.TypeString:   "an Edm.String is valid UTF-8",
	edm.TypeBinary:   "an Edm.Binary is base64 with padding and zero trailing bits",
	edm.TypeBoolean:  "an Edm.Boolean is true or false",
	edm.TypeInt32:    "an Edm.Int32 is a whole number from -2147483648 to 2147483647",
	edm.TypeInt64:    "an Edm.Int64 is a whole number from -9223372036854775808 to 9223372036854775807",
	edm.TypeDouble:   "an Edm.Double is a decimal number within the range of 64 bits, or NaN, Infinity or -Infinity",
	edm.TypeDateTime: "an Edm.DateTime is YYYY-MM-DDThh:mm:ss, an optional fraction, then Z, an offset such as +hh:mm, or nothing for UTC",
	edm.TypeGuid:     "an Edm.Guid is xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
}

// ErrText is matched by the error for a text that is not valid for its type.
var ErrText = errors.New("invalid text for the type")

// textError reports a text that is not valid for the type t.
type textError struct {
	t       edm.Type
	got     string
	outside bool // a well-formed DateTime outside the range
	digits  bool // a DateTime that would lose digits
}

func (e *textError) Error() string {
	switch {
	case e.digits:
		return e.got + " loses digits, because an Edm.DateTime has at most 7 of a second's fraction; round it"
	case e.outside:
		return e.got + " is outside 1601-01-01T00:00:00Z to 9999-12-31T23:59:59.9999999Z"
	}
	return e.got + ": " + textForms[e.t]
}

// ValueError returns the error of a member whose text ParseValue refused with err.
func ValueError(member string, text []byte, err error) *Error {
	e := &Error{Kind: BadValue, Member: member, What: err.Error()}
	e.classify(text, err)
	return e
}

// classify makes e an OutOfRange error if ParseValue refused text with err for that.
func (e *Error) classify(text []byte, err error) {
	if t := (*textError)(nil); errors.As(err, &t) && t.outside {
		e.Kind = OutOfRange
		e.Got = fmt.Sprintf("%s/%s/%s %s", text[5:7], text[8:10], text[:4], text[11:19])
	}
}

func (e *textError) Is(target error) bool { return target == ErrText || target == edm.ErrInvalid }
