package odata

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// ErrorKind is how the JSON of an entity is refused; the protocol has an error
// code for each.
type ErrorKind uint8

// The kinds of Error.
const (
	Malformed    ErrorKind = iota + 1 // not one JSON object whose values are scalars
	Duplicate                         // a member stands twice
	MissingKey                        // PartitionKey or RowKey is not there, or null
	BadValue                          // a value is not one of its type
	OutOfRange                        // a DateTime outside the years 1601 to 9999
	TooManyNames                      // more than MaxNames members
	MissingName                       // TableName is not there, null or empty
)

// Error says what in the JSON of an entity is wrong. errors.Is finds
// edm.ErrInvalid in it.
type Error struct {
	Kind   ErrorKind
	Member string // the member at fault, shortened; "" for the object as a whole
	Offset int    // where in the JSON, in bytes from 0
	What   string // what is there, and what should be
	Got    string // of OutOfRange, the moment as MM/dd/yyyy HH:mm:ss; else ""
}

// Error names member, offset and fault.
func (e *Error) Error() string {
	switch {
	case e.Kind == MissingKey:
		return e.Member + " is missing, and every entity has it"
	case e.Kind == MissingName:
		return e.Member + " is missing or empty, and every table has it"
	case e.Member == "":
		return fmt.Sprintf("offset %d: %s", e.Offset, e.What)
	}
	return fmt.Sprintf("member %q at offset %d: %s", e.Member, e.Offset, e.What)
}

// Is reports whether target is edm.ErrInvalid.
func (e *Error) Is(target error) bool { return target == edm.ErrInvalid }

// maxShown is the number of bytes of an input that a message shows.
const maxShown = 64

// shorten cuts s to about maxShown bytes, between characters.
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

// quote shows s in a message.
func quote(s []byte) string { return strconv.Quote(shorten(s)) }

// demands says of each type what its text is.
var demands = [...]string{
	edm.TypeString:   "an Edm.String is valid UTF-8",
	edm.TypeBinary:   "an Edm.Binary is base64 with padding, in one line, without bits that mean nothing",
	edm.TypeBoolean:  "an Edm.Boolean is true or false",
	edm.TypeInt32:    "an Edm.Int32 is a whole number from -2147483648 to 2147483647",
	edm.TypeInt64:    "an Edm.Int64 is a whole number from -9223372036854775808 to 9223372036854775807",
	edm.TypeDouble:   "an Edm.Double is a decimal number within the range of 64 bits, or NaN, Infinity or -Infinity",
	edm.TypeDateTime: "an Edm.DateTime is YYYY-MM-DDThh:mm:ss, a fraction or none, then Z, an offset as +hh:mm, or nothing for UTC",
	edm.TypeGuid:     "an Edm.Guid is xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
}

// ErrText is what errors.Is finds in the refusal of a text that is none of its
// type's.
var ErrText = errors.New("not a text of the type")

// textError refuses a text as one of the type t.
type textError struct {
	t       edm.Type
	got     string
	outside bool // a DateTime of the right form outside the range
}

func (e *textError) Error() string {
	if e.outside {
		return e.got + " is outside 1601-01-01T00:00:00Z to 9999-12-31T23:59:59.9999999Z"
	}
	return e.got + ": " + demands[e.t]
}

func (e *textError) Is(target error) bool { return target == ErrText || target == edm.ErrInvalid }
