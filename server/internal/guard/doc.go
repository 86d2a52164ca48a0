// Package guard keeps clients that are slow, idle or many from holding what
// others need: it bounds the connections of a listener and the time that a
// request's body may take.
package guard
