// Package storetest tests that a backend keeps the contract of package store.
//
// [Run] tests a [Backend] with a named subtest for each group of rules. [RunModel]
// compares a long random sequence of operations on the backend with a simple store
// in Go maps, which is the oracle. [NewMap] returns such a store, also for tests of
// code that only needs some Store.
package storetest
