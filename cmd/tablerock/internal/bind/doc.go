// Package bind finds out whether a program could listen on an address. On Unix it does not
// listen meanwhile, so that no client can connect.
package bind
