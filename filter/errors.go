package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Error reports a text that is not a valid filter.
type Error struct {
	// Unsupported is true for an operation that the service does not implement
	// (NotImplemented, status 501), and false for text that is not a filter
	// (InvalidInput, status 400).
	Unsupported bool
	Position    int    // where in the text, in UTF-16 code units, as the protocol counts
	Message     string // the service's text
}

// Error returns the Message.
func (e *Error) Error() string { return e.Message }

// The service's messages that do not quote the text.
const (
	messageInvalid        = "One of the request inputs is not valid."
	messageNotImplemented = "The requested operation is not implemented on the specified resource."
	messageTooDeep        = "Recursion depth exceeded allowed limit."
	messageTooMany        = "The filter has more comparisons or groups than allowed."
)

// maxQuotedBytes limits the text in a message. It is the length of the longest URL
// that the service accepts.
const maxQuotedBytes = 32 << 10

// syntaxError returns an error at the byte offset pos. The words are a format for
// the position and the text.
func syntaxError(text string, pos int, words string) *Error {
	at := edm.UTF16Len(text[:pos])
	return &Error{false, at, fmt.Sprintf(words, at, quoted(text))}
}

// Formats for syntaxError.
const (
	wordsSyntax             = "Syntax error at position %d in '%s'."
	wordsExpression         = "Expression expected at position %d in '%s'."
	wordsCloseParen         = "')' or operator expected at position %d in '%s'."
	wordsUnterminatedString = "There is an unterminated string literal at position %d in '%s'."
	wordsUnterminated       = "There is an unterminated literal at position %d in '%s'."
	wordsDigit              = "A digit was expected at position %d in '%s'."
)

// characterError returns an error for the character at the byte offset pos.
func characterError(text string, pos int) *Error {
	_, n := utf8.DecodeRuneInString(text[pos:])
	at := edm.UTF16Len(text[:pos])
	return &Error{false, at, fmt.Sprintf("Syntax error: character '%s' is not valid at position %d in '%s'.",
		text[pos:pos+n], at, quoted(text))}
}

// literalError returns an error for text[pos:end], which is not a literal of type t.
func literalError(text string, pos, end int, t edm.Type) *Error {
	at := edm.UTF16Len(text[:pos])
	return &Error{false, at, fmt.Sprintf("Unrecognized '%v' literal '%s' at '%d' in '%s'.",
		t, quoted(text[pos:end]), at, quoted(text))}
}

// quoted returns text, truncated to maxQuotedBytes.
func quoted(text string) string {
	if len(text) <= maxQuotedBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuotedBytes], "") + "..."
}

// refusal returns an error at the byte offset pos whose message does not quote text.
func refusal(text string, pos int, message string) *Error {
	return &Error{false, edm.UTF16Len(text[:pos]), message}
}

// notImplemented returns the error for an unsupported operation at the byte offset
// pos.
func notImplemented(text string, pos int) *Error {
	return &Error{true, edm.UTF16Len(text[:pos]), messageNotImplemented}
}

// incompatible returns the error for an operator with operands of the types left and
// right.
func incompatible(text string, pos int, left, right edm.Type, operator string) *Error {
	return refusal(text, pos, fmt.Sprintf(
		"A binary operator with incompatible types was detected. Found operand types '%v' and '%v' for operator kind '%s'.",
		left, right, operator))
}

// nullError returns the error for a comparison with null.
func nullError(text string, c *compareNode) *Error {
	if c.op == predicate.Eq || c.op == predicate.Ne {
		return refusal(text, c.left.pos, messageInvalid)
	}
	return refusal(text, c.left.pos, fmt.Sprintf(
		"The operator '%s' is not supported for the 'null' literal; only equality checks are supported.", operatorKind(c.op)))
}

// operatorKind returns the name of op in the service's messages.
func operatorKind(op predicate.Op) string {
	switch op {
	case predicate.Eq:
		return "Equal"
	case predicate.Ne:
		return "NotEqual"
	case predicate.Lt:
		return "LessThan"
	case predicate.Le:
		return "LessThanOrEqual"
	case predicate.Gt:
		return "GreaterThan"
	case predicate.Ge:
		return "GreaterThanOrEqual"
	}
	return op.String()
}
