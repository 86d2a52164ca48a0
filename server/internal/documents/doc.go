// Package documents converts the Table service's XML documents: access policies of a
// table, properties and statistics of the service.
//
// It parses the XML that clients send, writes the XML that they receive, and encodes
// policies and properties in a binary format for storage. It only handles bytes and
// values, not stores or requests.
package documents
