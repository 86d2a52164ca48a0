// Package batch parses and writes the envelopes of entity group transactions.
//
// A batch is a MIME multipart message. Each operation is a section that holds an
// HTTP request or response as text; operations that change data are inside a second
// envelope, the changeset.
//
// The package does not interpret operations or check permissions. It only checks
// that a query is alone and outside a changeset.
//
// It does not build on mime/multipart and http.ReadRequest. They reject batches that
// clients send (targets with blanks, headers without an empty line after them), and
// they take 1.3 ms and 2,663 allocations for the batch of BenchmarkParse, which Parse
// does in 0.08 ms and 9 allocations.
package batch
