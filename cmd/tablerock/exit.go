package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/wal"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitCorrupt     = 5
	exitLocked      = 6
	exitUnable      = 7
	exitInterrupted = 130
)

// usageError is a command line that means nothing.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// quietError ends the program with a code after all has been said.
type quietError struct{ code int }

func (e *quietError) Error() string { return "" }

// message returns the one line that tells people of err: what happened, where,
// and, as far as it can be known, what to do next.
func message(err error) string {
	var quiet *quietError
	if errors.As(err, &quiet) {
		return ""
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if next := hint.Next(err); next != "" {
		text += "; " + next
	}
	return text
}

// exitCode returns the code for err.
func exitCode(err error) int {
	var usage *usageError
	var quiet *quietError
	var badFilter *filter.Error
	switch {
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &usage), errors.As(err, &badFilter):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, store.ErrTableExists), errors.Is(err, store.ErrEntityExists), errors.Is(err, store.ErrPrecondition), errors.Is(err, fs.ErrExist):
		return exitConflict
	case errors.Is(err, store.ErrCorrupt):
		return exitCorrupt
	case errors.Is(err, store.ErrLocked):
		return exitLocked
	case unable(err):
		return exitUnable
	case errors.Is(err, store.ErrTableNotFound), errors.Is(err, store.ErrEntityNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitFailure
}

// unable reports whether err says that this database cannot be used by this
// program, this user, on this file system or at this address.
func unable(err error) bool {
	for _, e := range []error{
		store.ErrNewerFormat, wal.ErrNewerFormat, store.ErrNotDatabase, fs.ErrPermission,
		errors.ErrUnsupported, syscall.EROFS, syscall.ENOTDIR, syscall.ENOLCK,
		syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, hint.ErrOneAccount,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ofTable says which table err is about, if it is about one.
func (a *app) ofTable(table string, err error) error {
	if errors.Is(err, store.ErrTableNotFound) || errors.Is(err, store.ErrTableExists) {
		return fmt.Errorf("table %s: %w%s", table, withoutIndex(err), hint.Near(table, a.tables))
	}
	return err
}

// ofEntity says which entity, or table, err is about, of an operation alone.
func (a *app) ofEntity(table string, key edm.Key, err error) error {
	if errors.Is(err, store.ErrEntityNotFound) || errors.Is(err, store.ErrEntityExists) || errors.Is(err, store.ErrPrecondition) {
		return fmt.Errorf("table %s, PartitionKey %q, RowKey %q: %w", table, key.Partition, key.Row, withoutIndex(err))
	}
	return a.ofTable(table, err)
}

// withoutIndex returns what an operation alone failed with.
func withoutIndex(err error) error {
	var op *store.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
