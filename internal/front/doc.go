// Package front stands between the network and an http.Handler, and keeps clients
// that are slow, idle or many from holding what others need: it bounds the
// connections that are open, and the time that headers, bodies and answers take.
package front
