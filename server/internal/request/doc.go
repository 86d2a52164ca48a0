// Package request parses requests: the resource of a path, the options and continuation
// tokens of a query, and the headers Accept, Content-Type and Prefer. All of them may be
// forged.
package request
