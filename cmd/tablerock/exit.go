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
	exitUnusable    = 7
	exitInterrupted = 130
)

// usageError is the error of an invalid command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// quietError ends the program with an exit code after the message has been printed.
type quietError struct{ code int }

func (e *quietError) Error() string { return "" }

// message returns the line that describes err: what happened, where and, if that is known,
// what to do next.
func message(err error) string {
	var quiet *quietError
	if errors.As(err, &quiet) {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if errors.Is(err, context.Canceled) {
		text = "interrupted"
	}
	if next := hint.Next(err); next != "" {
		text += "; " + next
	}
	return text
}

// exitCode returns the exit code for err.
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
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrOutcomeUnknown):
		return exitFailure // whatever the cause, such as a missing socket
	case errors.Is(err, store.ErrTableExists), errors.Is(err, store.ErrEntityExists), errors.Is(err, store.ErrPrecondition), errors.Is(err, fs.ErrExist):
		return exitConflict
	case errors.Is(err, store.ErrCorrupt):
		return exitCorrupt
	case errors.Is(err, store.ErrLocked):
		return exitLocked
	case isUnusable(err):
		return exitUnusable
	case errors.Is(err, store.ErrTableNotFound), errors.Is(err, store.ErrEntityNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitFailure
}

// isUnusable reports whether err means that this program or user cannot use the database,
// or cannot use it on this file system or at this address.
func isUnusable(err error) bool {
	for _, e := range []error{
		store.ErrNewerFormat, store.ErrNotDatabase, fs.ErrPermission,
		errors.ErrUnsupported, syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOLCK,
		syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, hint.ErrOneAccount,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ofTable adds the name of the table to err if err is about a table.
func (a *app) ofTable(table string, err error) error {
	if errors.Is(err, store.ErrTableNotFound) || errors.Is(err, store.ErrTableExists) {
		return fmt.Errorf("table %s: %w%s", table, withoutIndex(err), hint.Near(table, a.tables))
	}
	return err
}

// ofEntity adds the entity or the table to err, the error of a single operation.
func (a *app) ofEntity(table string, key edm.Key, err error) error {
	if errors.Is(err, store.ErrEntityNotFound) || errors.Is(err, store.ErrEntityExists) || errors.Is(err, store.ErrPrecondition) {
		return fmt.Errorf("table %s, PartitionKey %q, RowKey %q: %w", table, key.Partition, key.Row, withoutIndex(err))
	}
	return a.ofTable(table, err)
}

// withoutIndex returns the error of a single operation without its index in the batch.
func withoutIndex(err error) error {
	var op *store.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
