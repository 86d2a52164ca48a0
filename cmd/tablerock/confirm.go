package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
)

// confirm asks on a terminal whether to do what cannot be undone. Elsewhere it returns an
// error unless yes is set.
func (a *app) confirm(ctx context.Context, yes bool, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if yes {
		return nil
	}
	f, ok := a.stdin.(*os.File)
	if !ok || !progress.IsTerminal(f) || !progress.IsTerminal(a.stderr) {
		return usagef("%s: needs --yes, because there is no terminal to ask on", what)
	}
	fmt.Fprintf(a.stderr, "%s? [y/N] ", what)
	answer, err := bufio.NewReader(interruptible(ctx, f)).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && strings.EqualFold(strings.TrimSpace(answer), "y") {
		return nil
	}
	return usagef("not confirmed; nothing was deleted")
}
