package filter

import (
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// parser is a recursive-descent parser with a method for each production of the
// grammar. Operators are not reserved: "and" is an operator where one may follow,
// and the name of a property where an operand is required.
type parser struct {
	lexer  lexer
	tok    token // lookahead
	depth  int   // of parentheses and negations around tok
	groups int   // "or" chains, "and" chains and "not" so far
}

// parse returns the syntax tree of text, which is valid UTF-8 and not blank.
//
//	filter = or-expr ;
func parse(text string) (node, *Error) {
	p := &parser{lexer: lexer{text: text}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.orExpr()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokenEnd {
		return nil, syntaxError(text, p.tok.end, wordsSyntax)
	}
	return n, nil
}

// orExpr parses a disjunction.
//
//	or-expr = and-expr { "or" and-expr } ;
func (p *parser) orExpr() (node, *Error) {
	return p.chain("or", (*parser).andExpr, newOr)
}

// andExpr parses a conjunction.
//
//	and-expr = not-expr { "and" not-expr } ;
func (p *parser) andExpr() (node, *Error) {
	return p.chain("and", (*parser).notExpr, newAnd)
}

// chain parses operands with the operator word between them.
func (p *parser) chain(word string, operand func(*parser) (node, *Error), join func(...node) node) (node, *Error) {
	n, err := operand(p)
	if err != nil || !p.atWord(word) {
		return n, err
	}
	if err := p.countGroup(); err != nil {
		return nil, err
	}
	nodes := []node{n}
	for p.atWord(word) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if n, err = operand(p); err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return join(nodes...), nil
}

// notExpr parses a negation. It binds less than a comparison: "not a eq 1" is
// "not (a eq 1)".
//
//	not-expr = { "not" } primary ;
func (p *parser) notExpr() (node, *Error) {
	if !p.atWord("not") {
		return p.primary()
	}
	if err := p.countGroup(); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	// "not" and a parenthesis after it are one level.
	if p.tok.kind != tokenOpen {
		if err := p.descend(); err != nil {
			return nil, err
		}
		defer p.ascend()
	}
	n, err := p.notExpr()
	if err != nil {
		return nil, err
	}
	return &notNode{node: n}, nil
}

// primary parses a condition.
//
//	primary = "(" or-expr ")" | comparison | bool-literal | property ;
func (p *parser) primary() (node, *Error) {
	var n node
	var err *Error
	if p.tok.kind == tokenOpen {
		n, err = p.parenthesised()
	} else {
		n, err = p.comparison()
	}
	if err != nil {
		return nil, err
	}
	// An operator here would take the result of a comparison as an operand.
	if _, ok := p.atComparison(); ok || p.atUnimplemented() {
		return nil, notImplemented(p.lexer.text, p.tok.pos)
	}
	return n, nil
}

// parenthesised parses "(" or-expr ")".
func (p *parser) parenthesised() (node, *Error) {
	if err := p.descend(); err != nil {
		return nil, err
	}
	defer p.ascend()
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.orExpr()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokenClose {
		return nil, syntaxError(p.lexer.text, p.tok.pos, wordsCloseParen)
	}
	return n, p.advance()
}

// comparison parses a comparison, or an operand that is used as a condition.
//
//	comparison = operand op operand ;
//	op         = "eq" | "ne" | "gt" | "ge" | "lt" | "le" ;
func (p *parser) comparison() (node, *Error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	op, ok := p.atComparison()
	if !ok {
		return &operandNode{operand: left}, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == tokenOpen {
		return nil, notImplemented(p.lexer.text, p.tok.pos)
	}
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	return &compareNode{op: op, left: left, right: right}, nil
}

// operand parses a property or a literal. Functions, paths and arithmetic, which
// OData has and the service does not support, get an error of their own.
//
//	operand  = property | literal ;
//	property = name ;
//	literal  = string | bool | int32 | int64 | double | datetime | guid | binary | "null" ;
func (p *parser) operand() (operand, *Error) {
	t := p.tok
	o := operand{pos: t.pos}
	switch t.kind {
	case tokenLiteral:
		o.kind, o.value = operandLiteral, t.value
	case tokenNull:
		o.kind = operandNull
	case tokenName:
		o.kind, o.name = operandProperty, p.word()
	case tokenArithmetic:
		if p.word() == "-" {
			return o, notImplemented(p.lexer.text, t.pos)
		}
		fallthrough
	case tokenEnd, tokenOpen, tokenClose, tokenMark:
		return o, syntaxError(p.lexer.text, t.pos, wordsExpression)
	}
	if err := p.advance(); err != nil {
		return o, err
	}
	if t.kind == tokenName && (p.tok.kind == tokenOpen || p.tok.kind == tokenMark && (p.word() == "/" || p.word() == ".")) {
		return o, notImplemented(p.lexer.text, t.pos)
	}
	return o, nil
}

// advance moves to the next token.
func (p *parser) advance() *Error {
	t, err := p.lexer.next()
	p.tok = t
	return err
}

// word returns the text of the token.
func (p *parser) word() string { return p.lexer.text[p.tok.pos:p.tok.end] }

// atWord reports whether the token is the operator word.
func (p *parser) atWord(word string) bool { return p.tok.kind == tokenName && p.word() == word }

// atComparison returns the comparison operator at the token.
func (p *parser) atComparison() (predicate.Op, bool) {
	if p.tok.kind != tokenName {
		return 0, false
	}
	switch p.word() {
	case "eq":
		return predicate.Eq, true
	case "ne":
		return predicate.Ne, true
	case "gt":
		return predicate.Gt, true
	case "ge":
		return predicate.Ge, true
	case "lt":
		return predicate.Lt, true
	case "le":
		return predicate.Le, true
	}
	return 0, false
}

// atUnimplemented reports whether the token is an operator of OData that the service
// does not support, or "=", which the service treats alike.
func (p *parser) atUnimplemented() bool {
	if p.tok.kind == tokenArithmetic {
		return true
	}
	if p.tok.kind != tokenName {
		return false
	}
	switch p.word() {
	case "add", "sub", "mul", "div", "mod", "in", "has":
		return true
	}
	return false
}

// descend increases the depth. The limit bounds the recursion of all functions that
// walk the tree.
func (p *parser) descend() *Error {
	if p.depth++; p.depth > maxDepth {
		return refusal(p.lexer.text, p.tok.pos, messageTooDeep)
	}
	return nil
}

func (p *parser) ascend() { p.depth-- }

// countGroup counts a chain or a negation.
func (p *parser) countGroup() *Error {
	if p.groups++; p.groups > maxGroups {
		return refusal(p.lexer.text, p.tok.pos, messageTooMany)
	}
	return nil
}
