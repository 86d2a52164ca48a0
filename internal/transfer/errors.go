package transfer

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/parquetfile"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
)

// LineError reports a record of a file that cannot be imported.
type LineError struct {
	File  string
	Line  int64  // first line of the record, from 1
	Last  int64  // last line of the record
	Unit  string // what Line counts; the default is lines
	Cause error
}

// Error returns the file, the lines and the cause.
func (e *LineError) Error() string {
	switch {
	case e.Unit != "":
		return fmt.Sprintf("%s: %s %d: %v", e.File, e.Unit, e.Line, e.Cause)
	case e.Last > e.Line:
		return fmt.Sprintf("%s: lines %d to %d: %v", e.File, e.Line, e.Last, e.Cause)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Cause)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Cause }

// invalid returns an error that matches edm.ErrInvalid.
func invalid(format string, args ...any) error {
	return &inputError{fmt.Sprintf(format, args...)}
}

// inputError is an error in the text of a file.
type inputError struct{ what string }

func (e *inputError) Error() string        { return e.what }
func (e *inputError) Is(target error) bool { return target == edm.ErrInvalid }

// fileError is an error in the structure of a file, behind which no record can be read. It
// matches edm.ErrInvalid.
type fileError struct{ error }

func (e *fileError) Is(target error) bool { return target == edm.ErrInvalid }
func (e *fileError) Unwrap() error        { return e.error }

func brokenFile(format string, args ...any) error { return &fileError{fmt.Errorf(format, args...)} }

// OptionError reports a file that needs another value of a field of ReadOptions: Delimiter,
// PartitionKey or RowKey, or probably another Format. It matches edm.ErrInvalid.
type OptionError struct{ Option, what string }

// Error returns what is wrong. It does not say where a user sets the option.
func (e *OptionError) Error() string { return e.what }

// Is reports whether target is edm.ErrInvalid.
func (e *OptionError) Is(target error) bool { return target == edm.ErrInvalid }

// keyColumns returns the columns with the keys of an entity.
func keyColumns(index map[string]int, names []string, o *ReadOptions) (partition, row int, err error) {
	for _, key := range [...]struct {
		option, name string
		at           *int
	}{{edm.PartitionKeyName, o.PartitionKey, &partition}, {edm.RowKeyName, o.RowKey, &row}} {
		var ok bool
		if *key.at, ok = index[key.name]; !ok {
			what := fmt.Sprintf("no column %s (columns: %s); choose the column that has the %s", quote(key.name), listed(names), key.option)
			return 0, 0, &OptionError{key.option, what}
		}
	}
	return partition, row, nil
}

// quote returns s shortened and quoted for a message.
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

// isRowError reports whether err concerns one row only, so that the next may be valid.
func isRowError(err error) bool {
	if text := (*textfile.Error)(nil); errors.As(err, &text) {
		return !text.Final
	}
	if errors.As(err, new(*fileError)) || errors.As(err, new(*parquetfile.Error)) {
		return false
	}
	return errors.Is(err, edm.ErrInvalid) || errors.Is(err, edm.ErrTooLarge)
}
