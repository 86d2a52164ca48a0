//go:build unix

package ui

import (
	"os/exec"
	"syscall"
)

// detach starts a program in a session of its own, so that ^C on the terminal does not end
// it.
func detach(program *exec.Cmd) { program.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
