package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func init() { commands = append(commands, newHealthcheck) }

// readyURL is the readiness URL of a server with default ports.
const readyURL = "http://127.0.0.1:10012/readyz"

// maxHealthText limits the bytes of a response that are printed.
const maxHealthText = 200

func newHealthcheck(a *app) *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Check whether a server is ready",
		Long: `Check whether a server is ready, at the URL of its admin listener, by default
http://127.0.0.1:10012/readyz. The exit code is 0 if it is ready, and 1 if it is not, does
not respond in time, or does not run, as the health check of a container expects.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := readyURL
			if len(args) == 1 {
				at = args[0]
			}
			u, err := url.Parse(at)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return usagef("%q is not the URL of a server; an example is %s", at, readyURL)
			}
			if u.Path == "" || u.Path == "/" {
				u.Path = "/readyz"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			return a.checkHealth(ctx, u)
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "time to wait for the response")
	return cmd
}

// checkHealth sends one request.
func (a *app) checkHealth(ctx context.Context, u *url.URL) error {
	shown := u.Redacted()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return usagef("%q: %v", shown, err)
	}
	response, err := http.DefaultClient.Do(r)
	if urlError := (*url.Error)(nil); errors.As(err, &urlError) {
		err = urlError.Err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		// The error is not wrapped, so that the exit code is 1 for every reason.
		return fmt.Errorf("%s does not respond: %s; start it with \"tablerock serve\", or give the URL of its admin listener", shown, err.Error())
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, maxHealthText))
	text := displayText(strings.TrimSpace(string(b)))
	if err == nil && response.StatusCode/100 == 4 {
		return fmt.Errorf("%s returned %s: %s; use /readyz of the admin listener, by default %s", shown, response.Status, text, readyURL)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s: %s", shown, response.Status, text)
	}
	a.note("%s is ready", shown)
	return nil
}
