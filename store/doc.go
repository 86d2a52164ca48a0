// Package store is the contract that every storage backend of Tablerock
// fulfils, the errors it may answer with, and the parts of the contract that
// backends share: the checks of a batch that need no stored state, and what a
// merge results in. Package storetest proves the contract on a backend.
//
// A write is acknowledged when Apply (or a table operation) returns nil: it is
// then on stable storage, unless the backend was opened without that promise.
// Nothing is revealed before it is durable: not a value, and not a refusal
// computed from one.
package store
