package sstable

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/internal/feature"
)

// ErrNewerFormat is the error of opening a file that has a newer format version, or that
// requires a feature that this build does not know. It is a feature.ErrNewerFormat.
var ErrNewerFormat = fmt.Errorf("sstable has a %w", feature.ErrNewerFormat)

var (
	errFinished    = errors.New("sstable writer is finished")
	errAborted     = errors.New("sstable writer was aborted")
	errForwardOnly = errors.New("an iterator over all versions moves forward only")
)
