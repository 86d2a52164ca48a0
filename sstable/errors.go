package sstable

import "errors"

// ErrNewerFormat is the error of opening a file that has a newer format version.
var ErrNewerFormat = errors.New("sstable of a newer format version")

var (
	errFinished    = errors.New("sstable writer is finished")
	errAborted     = errors.New("sstable writer was aborted")
	errForwardOnly = errors.New("an iterator over all versions moves forward only")
)
