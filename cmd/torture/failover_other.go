//go:build !linux

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (f *failoverFlags) run(*cobra.Command) error {
	return fmt.Errorf("%w: %s has no Debian packages", errNoCluster, runtime.GOOS)
}
