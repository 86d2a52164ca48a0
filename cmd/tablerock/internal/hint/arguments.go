package hint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/edm"
)

// Arguments returns an error if an argument of cmd cannot be what its usage line says: the
// name of a table, a key, or a file. Each command refuses these before it opens anything.
func Arguments(cmd *cobra.Command, args []string) error {
	kinds := strings.FieldsFunc(cmd.Use, func(r rune) bool { return strings.ContainsRune(" []", r) })[1:]
	kinds = slices.DeleteFunc(kinds, func(s string) bool { return s == "WHERE" || strings.HasPrefix(s, "--") })
	if cmd.Name() == "import" && len(args) == 1 {
		kinds = kinds[1:] // the table is omitted
	}
	for i, arg := range args {
		if i >= len(kinds) && !slices.Contains(kinds, "TABLE...") {
			return nil
		}
		if err := argument(kinds[min(i, len(kinds)-1)], arg); err != nil {
			return err
		}
	}
	return nil
}

// argument returns an error if arg cannot be what its word in a usage line says.
func argument(kind, arg string) error {
	switch kind {
	case "TABLE", "TABLE...", "NAME":
		return edm.CheckTableName(arg)
	case "PARTITIONKEY":
		return edm.CheckKey(edm.Key{Partition: arg})
	case "ROWKEY":
		return edm.CheckKey(edm.Key{Row: arg})
	case "FILE", "FILE|-", "DEST", "SRC":
		name := strings.TrimSuffix(kind, "|-")
		if arg == "" {
			return fmt.Errorf("%s is empty: give a path", name)
		}
		return NoConnectionString(name, arg)
	}
	return nil
}

// NoConnectionString returns an error if a value is a connection string, where a path is
// expected. The error does not show it, because it can contain a key.
func NoConnectionString(name, value string) error {
	if value == "UseDevelopmentStorage=true" || strings.Contains(value, "AccountName=") || strings.Contains(value, "TableEndpoint=") {
		return fmt.Errorf("%s is a connection string, and must be a path; --connection-string, and --from and --to of \"tablerock copy\", take one", name)
	}
	return nil
}
