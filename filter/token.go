package filter

import "github.com/tablerock-db/tablerock/edm"

type tokenKind uint8

const (
	tokenEnd        tokenKind = iota + 1
	tokenName                 // a property or an operator
	tokenLiteral              // a value
	tokenNull                 // null
	tokenOpen                 // (
	tokenClose                // )
	tokenArithmetic           // - or =, which no filter has
	tokenMark                 // , / . * ? : which no filter has
)

// token is a token of a filter, text[pos:end].
type token struct {
	kind     tokenKind
	pos, end int
	value    edm.Value // of a tokenLiteral
}
