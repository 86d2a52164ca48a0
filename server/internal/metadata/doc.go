// Package metadata keeps what clients set of an account and of its tables: it holds
// the documents of package service against a store, which takes them for bytes.
package metadata
