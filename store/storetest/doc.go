// Package storetest proves that a backend keeps the contract of package store.
//
// Run holds a Backend against the whole contract, one named subtest for each
// part; RunModel compares a long random sequence of operations with Map, a
// plain map that serves as second implementation and as oracle. Tests of code
// that needs nothing but a store can use NewMap as well.
package storetest
