//go:build !linux

package main

import (
	"errors"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

const rawName = "raw"

// rawSupports reports whether the raw engine has something to measure for w. On this
// system it has not.
func rawSupports(bench.Workload) bool { return false }

func (j *job) raw() ([]results.Result, error) { return nil, errors.ErrUnsupported }
