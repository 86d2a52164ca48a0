// Package front is an HTTP server that limits what clients can occupy: it bounds the
// number of open connections, and the time for headers, bodies and responses, so that
// slow, idle or many clients do not keep out others.
package front
