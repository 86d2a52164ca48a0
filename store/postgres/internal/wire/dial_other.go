//go:build !linux

package wire

import "syscall"

// setUserTimeout does nothing: only Linux has TCP_USER_TIMEOUT. Keepalive finds a peer that
// vanished while no byte is on the way.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
