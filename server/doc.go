// Package server speaks the Azure Table protocol over any store.Store: it turns
// HTTP requests into calls of a store, and their results into the answers that
// the Table service gives.
//
// The way of a request: internal/uri says what its path names; exchange.go carries it
// through version, authorisation and negotiation to the operation that route.go has
// for it (in tables.go, query.go, write.go, batch.go, acl.go, properties.go);
// internal/problem is the one place that maps an error to a status and a code.
package server
