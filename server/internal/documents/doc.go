// Package documents holds the documents of the Table service that are XML: access
// policies of a table, properties of the service, and its statistics. It reads
// what clients send, writes what they are answered, and keeps what has to be
// stored in a form of its own.
//
// Nothing here knows a store or a request: all is bytes and values.
package documents
