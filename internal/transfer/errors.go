package transfer

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// LineError says which record of a file cannot be imported.
type LineError struct {
	File  string
	Line  int64 // where the record begins, from 1
	Cause error
}

// Error names file, line and cause.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Cause) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Cause }

// invalid returns an error that is edm.ErrInvalid, in words of its own.
func invalid(format string, args ...any) error {
	return &inputError{fmt.Sprintf(format, args...)}
}

// inputError is a fault of a file's text.
type inputError struct{ what string }

func (e *inputError) Error() string        { return e.what }
func (e *inputError) Is(target error) bool { return target == edm.ErrInvalid }

// errTooLong is the fault of a record above MaxRecordBytes.
var errTooLong = invalid("the record is longer than %d bytes, which no entity is", MaxRecordBytes)

// quote shows s, shortened, in a message.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		n := most
		for n > most-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		return strconv.Quote(s[:n] + "...")
	}
	return strconv.Quote(s)
}

// inRow reports whether err is the fault of one row, so that the next may pass.
func inRow(err error) bool { return errors.Is(err, edm.ErrInvalid) || errors.Is(err, edm.ErrTooLarge) }
