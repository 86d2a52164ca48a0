package pgbackend

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/store/postgres"
)

// standbyItem is the item of a Report that --allow-async accepts.
const standbyItem = "synchronous standby"

func (e *Env) check(ctx context.Context, u *URL) error {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, errSilent)
	defer cancel()
	report, err := postgres.Check(ctx, u.connection)
	if err != nil {
		return explain(ctx, u, err)
	}
	var list []output.Record
	bad := int64(0)
	for _, f := range report.Items {
		list = append(list, output.Record{{"Check", f.Name}, {"OK", f.OK}, {"Detail", f.Detail}})
		if !f.OK && (f.Name != standbyItem || !e.Flags.AllowAsync) {
			bad++
		}
	}
	if err := e.Printer().List([]string{"Check", "OK", "Detail"}, list); err != nil || report.OK() || bad == 0 {
		return err
	}
	e.Note("%s, %s: %s not OK", u, report.Server, quantity.Plural(bad, "check"))
	return e.Failed
}

func (e *Env) sweep(ctx context.Context, u *URL) error {
	bar := e.Bar("sweep", 0)
	rows, err := postgres.Sweep(ctx, u.connection, func(rows int64) { bar.Set(rows, 0) })
	bar.Done()
	switch {
	case errors.Is(err, context.Canceled):
		e.Note("removed %d entities; repeat the command to continue", rows)
		return err
	case err != nil && rows == 0:
		return explain(ctx, u, err)
	case err != nil:
		return fmt.Errorf("%w (removed %d entities; repeat the command to continue)", explain(ctx, u, err), rows)
	}
	e.Note("removed %d entities of dropped tables from %s", rows, u)
	return nil
}
