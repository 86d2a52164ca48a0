// Package rest sends requests of the Table service to a server and never repeats one, so
// that the caller sees each outcome.
package rest
