// Package batch parses and writes the envelopes of entity group transactions.
//
// A batch is a MIME multipart message. Each operation is a section that holds an
// HTTP request or response as text; operations that change data are inside a second
// envelope, the changeset.
//
// The package does not interpret operations or check permissions. It only checks
// that a query is alone and outside a changeset.
package batch
