package main

import (
	"context"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/health"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
)

func init() { commands = append(commands, newHealthcheck) }

func newHealthcheck(a *app) *cobra.Command {
	var limit time.Duration
	var admin string
	cmd := &cobra.Command{
		Use:   "healthcheck [URL|HOST:PORT]",
		Short: "Check whether a server is ready",
		Long: `Check whether a server is ready, at the URL or the address of its admin listener, by
default that of --admin or TABLEROCK_ADMIN. The exit code is 0 if it is ready, and 1 if
it is not, does not respond in time, or does not run, as the health check of a container
expects.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var u *url.URL
			var err error
			if len(args) == 1 {
				u, err = health.URL(args[0])
			} else {
				u, err = health.AdminURL(admin)
			}
			if err != nil {
				return usagef("%v", err)
			}
			if limit <= 0 {
				return usagef("--timeout %s: must be above 0", limit)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			if err := health.Check(ctx, u, output.Cell); err != nil {
				return err
			}
			a.note("%s is ready", u.Redacted())
			return nil
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "time to wait for the response")
	cmd.Flags().StringVar(&admin, "admin", health.DefaultAdmin, "`address` of the admin listener, as in tablerock serve")
	return cmd
}
