// Package edm is the data model of the Azure Table service: the eight Edm
// types and their values, properties, entities, keys and ETags, and every
// rule and limit that a table, a key, a property or an entity must keep.
//
// Nothing here knows how data is stored or asked for. Every type is safe for
// concurrent readers; none is safe for a writer beside another goroutine.
package edm
