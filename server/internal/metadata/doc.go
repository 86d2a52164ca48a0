// Package metadata keeps what clients set of an account and of its tables: it reads
// and writes the documents of package service in a store, which takes them for bytes.
package metadata
