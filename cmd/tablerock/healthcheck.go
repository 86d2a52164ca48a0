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

// readyURL is where a server on its usual ports says whether it is ready.
const readyURL = "http://127.0.0.1:10012/readyz"

// mostHealthText is how much of an answer is shown.
const mostHealthText = 200

func newHealthcheck(a *app) *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Ask a server whether it is ready",
		Long: `Ask a server whether it is ready, at the URL of its admin listener, by default
http://127.0.0.1:10012/readyz. The exit code is 0 if it says yes, and 1 if it says no,
says nothing within the time, or is not there: what a container's health check wants.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := readyURL
			if len(args) == 1 {
				at = args[0]
			}
			u, err := url.Parse(at)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return usagef("%q is no URL of a server; one is %s", at, readyURL)
			}
			if u.Path == "" || u.Path == "/" {
				u.Path = "/readyz"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			return a.askHealth(ctx, u)
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

// askHealth asks once.
func (a *app) askHealth(ctx context.Context, u *url.URL) error {
	shown := u.Redacted()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return usagef("%q: %v", shown, err)
	}
	answer, err := http.DefaultClient.Do(r)
	if urlError := (*url.Error)(nil); errors.As(err, &urlError) {
		err = urlError.Err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		// Not wrapped: whatever the reason, the exit code is that of a failure.
		return fmt.Errorf("%s does not answer: %s; start it with \"tablerock serve\", or give the URL of its admin listener", shown, err.Error())
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostHealthText))
	if err == nil && answer.StatusCode/100 == 4 {
		return fmt.Errorf("%s says %s: %s; /readyz of the admin listener tells, by default %s", shown, answer.Status, displayText(strings.TrimSpace(string(text))), readyURL)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s: %s", shown, answer.Status, displayText(strings.TrimSpace(string(text))))
	}
	a.note("%s says ok", shown)
	return nil
}
