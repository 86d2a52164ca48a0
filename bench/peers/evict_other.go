//go:build !linux

package main

import (
	"errors"
	"fmt"
)

// evict returns an error: this system has no call for it.
func evict(dir string) error { return fmt.Errorf("evict %s: %w", dir, errors.ErrUnsupported) }
