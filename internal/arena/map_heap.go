//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd) || race

package arena

import "errors"

const canMap = false

func mapBytes(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapBytes([]byte) error { return errors.ErrUnsupported }

func adviseFree([]byte) {}

func adviseHuge([]byte) {}

func adviseSmall([]byte) {}

func populateSlab([]byte) {}

func populate([]byte) {}

func dropPages([]byte) {}
