//go:build !unix

package bind

import "net"

// Try returns the error with which net.ListenTCP fails, or nil.
func Try(a *net.TCPAddr) error {
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		return err
	}
	return l.Close()
}
