// Package parquetfile writes and reads entities as rows of Parquet files.
//
// The library parquet-go writes the files and decodes the structures of their metadata. It
// trusts lengths in what it reads: a list may claim 2^31 items and a page may decompress to
// any size. So this package checks the structures before the library decodes them, reads
// the pages itself, and returns a panic of the library as an error.
package parquetfile

import (
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
)

// typesKey is the key of the file's metadata that holds the Edm type of each column, as
// JSON.
const typesKey = "tablerock.types"

// TypeSuffix ends the name of a column that holds the type of each value of another column,
// whose values are text.
const TypeSuffix = "@type"

// Unit is the unit of the DateTimes of a column.
type Unit uint8

// The units. A column has the first one that holds all its values exactly.
const (
	Nanoseconds  Unit = iota // from 1677 to 2262
	Microseconds             // without a seventh digit
	Ticks                    // 100 ns since 1601, which only this program reads as times
)

// epoch is 1970 in ticks.
const epoch = 116_444_736_000_000_000

// The DateTimes that Nanoseconds holds.
const (
	minNanoseconds edm.Ticks = epoch - 1<<63/100
	maxNanoseconds edm.Ticks = epoch + (1<<63-1)/100
)

// Needs is what a set of DateTimes needs of its unit. That of two sets is a|b.
type Needs uint8

const (
	needsRange Needs = 1 << iota // a time that Nanoseconds does not hold
	needsDigit                   // a time with a seventh digit
)

// NeedsOf returns the needs of one DateTime.
func NeedsOf(t edm.Ticks) (n Needs) {
	if t < minNanoseconds || t > maxNanoseconds {
		n |= needsRange
	}
	if t%10 != 0 {
		n |= needsDigit
	}
	return n
}

// Unit returns the unit that holds all DateTimes with these needs.
func (n Needs) Unit() Unit {
	switch {
	case n&needsRange == 0:
		return Nanoseconds
	case n&needsDigit == 0:
		return Microseconds
	}
	return Ticks
}

// Column is a property in a file.
type Column struct {
	Name string
	Type edm.Type // of all values, or 0 if they have several
	Unit Unit     // of an edm.TypeDateTime
}

// Error is an error in the bytes of a file. It matches edm.ErrInvalid.
type Error struct{ what string }

// Error returns what is wrong.
func (e *Error) Error() string { return e.what }

// Is reports whether target is edm.ErrInvalid.
func (e *Error) Is(target error) bool { return target == edm.ErrInvalid }

// damaged returns an error about damaged bytes.
func damaged(format string, args ...any) error {
	return &Error{"the Parquet file is damaged: " + fmt.Sprintf(format, args...) + "; write or copy it again"}
}

// guard calls f and returns a panic as an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damaged("%v", r)
		}
	}()
	return f()
}
