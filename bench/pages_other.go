//go:build !linux

package bench

import "errors"

func dropPages(string) error { return errors.ErrUnsupported }
