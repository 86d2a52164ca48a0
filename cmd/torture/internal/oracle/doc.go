// Package oracle says what a database must hold: a plain model of its contents,
// and the chain of states that its commits made one after another.
//
// It shares no code with the engine. A state is reduced to a sum that does not
// depend on order, so that a recovered database is compared with every state
// that it may be in by reading it once.
package oracle
