// Package request reads what a client asks for: the resource that a path names, the
// options and continuation tokens of a query, and the headers Accept, Content-Type and
// Prefer. All of it comes from clients and may be forged.
package request
