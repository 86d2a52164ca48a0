package sstable

import "errors"

// ErrNewerFormat is the error of opening a file that has a newer format version, or that
// requires a feature that this build does not know.
var ErrNewerFormat = errors.New("sstable has a newer format")

var (
	errFinished    = errors.New("sstable writer is finished")
	errAborted     = errors.New("sstable writer was aborted")
	errForwardOnly = errors.New("an iterator over all versions moves forward only")
)
