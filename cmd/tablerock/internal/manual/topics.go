package manual

import "github.com/spf13/cobra"

// Topics returns the help topics. They are commands without a run, which cobra lists as
// additional help topics.
func Topics() []*cobra.Command {
	return []*cobra.Command{{
		Use:   "exit-codes",
		Short: "The exit codes of all commands",
		// A topic has no flags.
		DisableFlagsInUseLine: true,
		Long: `The exit codes of all commands.

      0  success
      1  failure: bad data, a refused limit, a system error
      2  wrong flags or arguments, as the name of a table or a key that cannot exist
      3  no such database, table, entity or file
      4  it exists already, or the ETag differs
      5  damage found
      6  another process has the database, and is no server that answers
      7  cannot run here: the address is in use, the directory holds something else, the
         key, user or program is refused, or Entra ID gives no token
    130  interrupted`,
	}}
}
