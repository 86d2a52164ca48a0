// Package full fills small volumes with the real program and checks its promises on a full
// disk: nothing acknowledged is lost, reads continue, and deletes make room again.
package full
