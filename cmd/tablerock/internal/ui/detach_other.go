//go:build !unix

package ui

import "os/exec"

// detach does nothing: the opener of these systems ends at once.
func detach(*exec.Cmd) {}
