// Package metadata reads and writes what clients set of an account and of its tables, and what
// a store keeps as bytes: service properties, through a cache, and access policies. Package
// documents has the forms of both.
//
// Its functions, and the methods of PropertyCache, may be called concurrently.
package metadata
