package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// failure returns err, of a flight, as an error of package store. write means that the flight
// could commit.
func failure(err error, write bool) error {
	switch {
	case err == nil:
		return nil
	case isOurs(err):
		return err
	case write && wire.Unknown(err):
		return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	var lost *wire.LostError
	if errors.As(err, &lost) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return lost.Err
		}
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return refused(err)
}

// isOurs reports whether err is one of package store already.
func isOurs(err error) bool {
	for _, target := range [...]error{
		store.ErrClosed, store.ErrUnavailable, store.ErrOutcomeUnknown, store.ErrCorrupt, store.ErrTableNotFound, store.ErrEntityNotFound,
		store.ErrTableExists, store.ErrEntityExists, store.ErrPrecondition, store.ErrInvalid,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// refused returns an answer of the server, after which nothing happened, as an error of
// package store.
func refused(err error) error {
	refusal := wire.RefusalOf(err)
	if refusal == nil || len(refusal.Code) != 5 {
		return err
	}
	switch code := refusal.Code; code {
	case "53100": // disk_full
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	case "42501", "28000", "28P01":
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	case "42P01", "42703": // undefined_table, undefined_column
		return fmt.Errorf("%w: %w", errNoSchema, err)
	case "XX001", "XX002": // data_corrupted, index_corrupted
		return corrupt.Newf("tr_entities", 0, "%s", firstLine(refusal.Message))
	case "25006", // read_only_sql_transaction: the server was demoted
		"55P03", // lock_not_available
		"40001", "40P01", "23505", "25P03", "26000", "0A000":
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	default:
		switch code[:2] {
		case "08", "53", "57", "58": // connection, resources, intervention of an operator, system
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
	return err
}

// isOpError reports whether err refuses an operation.
func isOpError(err error) bool {
	var op *store.OpError
	return errors.As(err, &op)
}

// firstLine returns the first line of an answer's text.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
