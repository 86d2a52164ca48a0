package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newCopy) }

func newCopy(a *app) *cobra.Command {
	var from, to string
	var credentials where.Flags
	cmd := &cobra.Command{
		Use:   "copy --from WHERE --to WHERE [TABLE...]",
		Short: "Copy tables between directories, servers and databases of PostgreSQL",
		Long: `Copy tables, by default all, between directories, servers and databases of PostgreSQL.
WHERE is a directory as in --data, or that of one account in it; the URL of a server, as in
--endpoint; a connection string; or the URL of a database, as in --backend, which can have
the parameter account. Missing tables are created. An entity that is there already with the
same properties is not written, so the same command goes on after an interruption.
Entities that only the destination has stay. Timestamps and ETags are new, and access
policies are not copied.

  tablerock copy --from tablerock-data --to https://shop.table.core.windows.net Orders
  tablerock copy --from tablerock-data --to 'postgres://db1/tables?account=shop'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if from == "" || to == "" {
				return usagef("copy needs --from and --to: %s", cmd.UseLine())
			}
			credentials.Backend = a.where.Backend
			locations, err := credentials.Parse(a.location(cmd), from, to)
			if err != nil {
				return usagef("%v", err)
			}
			src, dst := a.at("--from", locations[0]), a.at("--to", locations[1])
			if src.dataName() == dst.dataName() {
				return usagef("--from and --to are both %s", src.dataName())
			}
			return a.copy(cmd.Context(), src, dst, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "copy from this directory, URL or connection string (`WHERE`)")
	flags.StringVar(&to, "to", "", "copy to this directory, URL or connection string (`WHERE`)")
	credentials.AddCredentials(flags)
	return cmd
}

// at returns a copy of a that uses the data at l, the value of a flag.
func (a *app) at(flag string, l where.Location) *app {
	of := *a
	of.server, of.data, of.dirFlag, of.dirFlags = l.Server, l.Dir, flag, flag
	account := filepath.Base(filepath.Clean(l.Dir))
	if _, err := os.Stat(filepath.Join(l.Dir, filename.Manifest)); l.Server == nil && err == nil && sharedkey.IsAccountName(account) {
		of.data, of.account = filepath.Dir(filepath.Clean(l.Dir)), account
	}
	return &of
}

// copy copies tables, or all if there are no names.
func (a *app) copy(ctx context.Context, src, dst *app, tables []string) error {
	return src.readStore(func(from store.Store) error {
		tables, err := bulk.Tables(ctx, from, tables)
		if err != nil {
			return hint.Interrupted(err, "nothing is copied")
		}
		return dst.createStore(engine.Options{}, func(to store.Store) error {
			for _, table := range tables {
				if err := a.copyTable(ctx, from, to, table); err != nil {
					return err
				}
			}
			a.note("copied %s from %s to %s; ETags and Timestamps are new, and access policies are not copied",
				quantity.Plural(int64(len(tables)), "table"), src.dataName(), dst.dataName())
			return nil
		})
	})
}

// copyTable copies one table.
func (a *app) copyTable(ctx context.Context, from, to store.Store, table string) error {
	bar := a.newBar("copy "+table, 0)
	c := &bulk.Copier{From: from, To: to, Progress: func(n bulk.Copied) { bar.Set(n.Rows, 0) }}
	db, local := to.(*engine.DB)
	if local {
		c.Load = bulk.LoadOf(db)
	} else {
		c.To = &bulk.Retrying{Store: to}
	}
	begin := time.Now()
	n, err := c.Table(ctx, table)
	bar.Done()
	if err == nil && local {
		err = db.Flush(ctx)
	}
	if err != nil {
		const state = "the copy is not complete; copy again to continue"
		return hint.Interrupted(hint.Repeatable(fmt.Errorf("table %s: %w (%s)", table, err, state)), "table "+table+": "+state)
	}
	a.note("table %s: %s, %s written, %.2f s", table, quantity.Plural(n.Rows, "entity"), quantity.Count(n.Written), time.Since(begin).Seconds())
	return nil
}
