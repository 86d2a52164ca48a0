// Package oracle models a database: its contents, and the chain of states after each commit.
//
// It shares no code with the engine. The sum of a state does not depend on order, so that
// one scan of a recovered database compares it with every state that it may have.
package oracle
