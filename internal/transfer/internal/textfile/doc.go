// Package textfile splits the text of a file into records: lines, rows of CSV, or values of
// JSON.
//
// A record has at most MaxRecordBytes, so that memory is bounded whatever the text is. The
// slices of a record are views of one buffer, valid until the next record is read.
//
// An *Error reports text that is not in its format. One that is not Final concerns a single
// record, which is consumed: the next call returns the record after it. Other errors are those
// of the file, and io.EOF is its end. One goroutine uses a Reader and what is made of it.
package textfile

import (
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
)

// MaxRecordBytes limits a record of a file. An entity of the maximum size is far smaller
// in any encoding.
const MaxRecordBytes = 16 << 20

// Error reports text that is not in its format. It matches edm.ErrInvalid.
type Error struct {
	what  string
	Final bool // no record behind it can be read
}

// Error returns what is wrong.
func (e *Error) Error() string { return e.what }

// Is reports whether target is edm.ErrInvalid.
func (e *Error) Is(target error) bool { return target == edm.ErrInvalid }

// badRecord returns an error of one record.
func badRecord(format string, args ...any) error { return &Error{what: fmt.Sprintf(format, args...)} }

// badFile returns an error that ends the file.
func badFile(format string, args ...any) error {
	return &Error{what: fmt.Sprintf(format, args...), Final: true}
}

// errTooLong reports a record above MaxRecordBytes.
var errTooLong = badRecord("the record is longer than %d bytes", MaxRecordBytes)

// errTruncated reports JSON text that ends within a value.
var errTruncated = badFile("the JSON text ends before its end: the file is truncated; copy it again")
