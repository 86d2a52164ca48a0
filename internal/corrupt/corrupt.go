// Package corrupt defines the error for damaged bytes in a file.
package corrupt

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrCorrupt matches every Error by errors.Is.
var ErrCorrupt = errors.New("corrupt data")

// Error reports damaged bytes of a file. errors.As converts it to
// store.CorruptError, which must have the same fields.
type Error struct {
	File   string // name of the file without its directory
	Offset int64  // of the first damaged byte, or of the block or record that holds it
	What   string // what was read and what was expected
}

// Newf returns an Error whose What is formatted.
func Newf(file string, offset int64, format string, args ...any) *Error {
	return &Error{File: file, Offset: offset, What: fmt.Sprintf(format, args...)}
}

// Error describes the damage with its file and offset.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: corrupt at offset %d: %s", e.File, e.Offset, e.What)
}

// As sets target, if it points to a pointer to a struct type of the same fields,
// and reports whether it does. So errors.As finds store.CorruptError, a type that
// this package cannot import.
func (e *Error) As(target any) bool {
	to := reflect.ValueOf(target).Elem()
	from := reflect.ValueOf(e)
	if to.Kind() != reflect.Pointer || !from.CanConvert(to.Type()) {
		return false
	}
	to.Set(from.Convert(to.Type()))
	return true
}

// Is reports whether target is ErrCorrupt.
func (e *Error) Is(target error) bool { return target == ErrCorrupt }
