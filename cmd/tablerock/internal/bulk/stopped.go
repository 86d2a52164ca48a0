package bulk

import (
	"errors"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Modes has the modes of an import by the names that users give them.
var Modes = map[string]transfer.Mode{"replace": transfer.Replace, "merge": transfer.Merge, "insert": transfer.Insert}

// IsBadRow reports whether an import ended at a row that cannot be imported.
func IsBadRow(err error) bool {
	line := (*transfer.LineError)(nil)
	return errors.As(err, &line)
}

// Stopped says what is stored after an import that ended with err, and how to continue.
func Stopped(rows int64, table string, m transfer.Mode, err error) string {
	text := quantity.Plural(rows, "entity")
	if rows == 1 {
		text += " is stored in table " + table
	} else {
		text += " are stored in table " + table
	}
	bad, damage, option := IsBadRow(err), (*transfer.DamageError)(nil), (*transfer.OptionError)(nil)
	first := ""
	switch {
	case bad && errors.As(err, &option): // the file does not begin as JSON does
		first = "give the format of the file with --format, or correct that row and "
	case bad:
		first = "correct that row and "
	case errors.Is(err, store.ErrInvalid) && !errors.As(err, &damage): // damage says to copy the file
		first = "correct the file and "
	}
	switch {
	case errors.Is(err, store.ErrEntityExists):
		return text // the error has its own advice
	case m == transfer.Insert && (rows > 0 || !bad):
		return text + "; " + first + "import again with --mode replace or merge, or with --skip-bad, because insert refuses entities that exist"
	case bad:
		return text + "; " + first + "import again, or use --skip-bad"
	}
	return text + "; " + first + "import again to continue"
}
