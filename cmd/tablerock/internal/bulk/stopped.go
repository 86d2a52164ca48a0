package bulk

import (
	"errors"

	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Stopped says what is stored after an import that ended with err, and how to continue.
// stored is the number of entities in words.
func Stopped(stored, table string, m transfer.Mode, err error) string {
	text := stored + " in table " + table
	line := (*transfer.LineError)(nil)
	bad := errors.As(err, &line)
	switch {
	case errors.Is(err, store.ErrEntityExists):
		return text // the error has its own advice
	case m == transfer.Insert && bad:
		return text + "; correct that row and import again with --mode replace or merge, because insert refuses entities that exist"
	case m == transfer.Insert:
		return text + "; import again with --mode replace or merge, because insert refuses entities that exist"
	case bad:
		return text + "; correct that row and import again, or use --skip-bad"
	}
	return text + "; import again to continue"
}
