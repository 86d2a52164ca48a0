//go:build (darwin || dragonfly || freebsd || netbsd || openbsd) && !race

package arena

// adviseHuge does nothing: the system has no such advice.
func adviseHuge([]byte) {}
