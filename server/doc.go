// Package server speaks the Azure Table protocol over any store.Store: it turns
// HTTP requests into calls of a store, and their results into the answers that
// the Table service gives.
//
// The way of a request: route.go says what its path names; exchange.go carries it
// through version, authorisation and negotiation to the operation (tables.go,
// query.go, write.go, batch.go, acl.go, properties.go); internal/problem is the one
// place that maps an error to a status and a code.
package server
