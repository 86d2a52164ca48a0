// Package manual writes the pages of the command tree for the program man.
package manual

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Command returns the command that writes the pages of its root. It is hidden, because
// packages contain the pages. args checks that there is one argument.
func Command(args cobra.PositionalArgs) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages to a directory",
		Hidden: true,
		Args:   args,
		RunE:   func(cmd *cobra.Command, args []string) error { return write(cmd.Root(), args[0]) },
	}
}

// write writes one page for root and one for each command and help topic below it to a
// directory, which it creates. SOURCE_DATE_EPOCH sets the date of the pages.
func write(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	escape(root)
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: fmt.Sprintf("%s %s", root.Name(), root.Version), Manual: "Tablerock"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	// GenManTree leaves topics out.
	for _, c := range root.Commands() {
		if !c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := doc.GenManTree(c, header, dir); err != nil {
			return fmt.Errorf("manual page %s: %w", c.Name(), err)
		}
	}
	return nil
}

// escape changes the texts of c and the commands below it so that GenManTree, which takes them for
// Markdown, keeps the underscores of a name such as __azurite_db_table__.json.
func escape(c *cobra.Command) {
	c.Long = strings.ReplaceAll(c.Long, "__", `\_\_`)
	for _, below := range c.Commands() {
		escape(below)
	}
}
