//go:build !unix

package serve

import "net"

// tryAddress returns the error with which net.ListenTCP fails, or nil.
func tryAddress(a *net.TCPAddr) error {
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		return err
	}
	return l.Close()
}
