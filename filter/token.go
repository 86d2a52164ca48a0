package filter

import "github.com/tablerock-db/tablerock/edm"

// tokenKind is what a token is.
type tokenKind uint8

const (
	tokenEnd        tokenKind = iota + 1
	tokenName                 // a property, an operator, or a word like these
	tokenLiteral              // a value
	tokenNull                 // null
	tokenOpen                 // (
	tokenClose                // )
	tokenArithmetic           // a minus, or a sign of equality, which no filter has
	tokenMark                 // , / . * ? : which no filter has either
)

// token is one word of a filter; text[pos:end] are its characters.
type token struct {
	kind     tokenKind
	pos, end int
	value    edm.Value // of a tokenLiteral
}
