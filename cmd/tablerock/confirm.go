package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
)

func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// canAsk returns an error that names what is to be done if there is no terminal to ask on.
func (a *app) canAsk(what string) error {
	if f, ok := a.stdin.(*os.File); !ok || !progress.IsTerminal(f) || !progress.IsTerminal(a.stderr) {
		return usagef("%s: needs --yes, because there is no terminal to ask on", what)
	}
	return nil
}

// confirm asks on a terminal whether to do what cannot be undone. Elsewhere it returns an
// error unless yes is set.
func (a *app) confirm(ctx context.Context, yes bool, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if yes {
		return nil
	}
	if err := a.canAsk(what); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "%s? [y/N] ", what)
	answer, err := bufio.NewReader(interruptible(ctx, a.stdin)).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return usagef("not confirmed; nothing was deleted")
}
