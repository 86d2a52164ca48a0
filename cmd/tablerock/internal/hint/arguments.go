package hint

import (
	"fmt"
	"os"
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
		return Path(name, arg)
	}
	return nil
}

// Path returns an error if a value is a connection string or a URL, where a path is expected. The
// error does not show it, because it can contain a key.
func Path(name, value string) error {
	const instead = "%s is a %s, and must be a path; --connection-string, --endpoint, and --from and --to of \"tablerock copy\", take that of a server"
	if value == "UseDevelopmentStorage=true" || strings.Contains(value, "AccountName=") || strings.Contains(value, "TableEndpoint=") {
		return fmt.Errorf(instead, name, "connection string")
	}
	if IsURL(value) && !strings.HasPrefix(strings.ToLower(value), "postgres") { // where.Of refuses these
		return fmt.Errorf(instead, name, "URL")
	}
	return nil
}

// IsURL reports whether text, which is no path that exists, begins with the scheme of a URL. As a path
// it would make a directory such as s3: here. A letter is a drive of Windows.
func IsURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok || len(scheme) < 2 || strings.ContainsFunc(scheme, func(r rune) bool { return !isLetter(r) && !('0' <= r && r <= '9') }) {
		return false
	}
	_, err := os.Stat(text)
	return err != nil
}

func isLetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }
