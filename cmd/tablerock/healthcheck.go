package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func init() { commands = append(commands, newHealthcheck) }

// The address of the admin listener of a server with default ports, and its readiness URL.
const (
	defaultAdmin = "127.0.0.1:10012"
	readyPath    = "/readyz"
	readyURL     = "http://" + defaultAdmin + readyPath
)

// maxHealthText limits the bytes of a response that are printed.
const maxHealthText = 200

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
				u, err = healthURL(args[0])
			} else {
				u, err = adminURL(admin)
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			return a.checkHealth(ctx, u)
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "time to wait for the response")
	cmd.Flags().StringVar(&admin, "admin", defaultAdmin, "`address` of the admin listener, as in tablerock serve")
	return cmd
}

// adminURL returns the readiness URL of a server with that --admin.
func adminURL(admin string) (*url.URL, error) {
	if admin == "off" {
		return nil, usagef("--admin or TABLEROCK_ADMIN is off: give the URL of a server; an example is %s", readyURL)
	}
	if host, port, err := net.SplitHostPort(admin); err == nil {
		switch ip := net.ParseIP(host); {
		case host == "", ip.Equal(net.IPv4zero):
			host = "127.0.0.1"
		case ip.Equal(net.IPv6zero):
			host = "::1"
		}
		admin = net.JoinHostPort(host, port)
	}
	return healthURL(admin)
}

// healthURL returns the URL to request for a URL or a HOST:PORT, perhaps with a path.
func healthURL(text string) (*url.URL, error) {
	at, isAddress := text, !strings.Contains(text, "://")
	if isAddress {
		at = "http://" + text
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || isAddress && u.Port() == "" {
		return nil, usagef("%q is not the URL of a server or HOST:PORT; an example is %s", text, readyURL)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = readyPath
	}
	return u, nil
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
