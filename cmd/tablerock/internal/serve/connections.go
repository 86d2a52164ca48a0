package serve

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
)

// Connections returns the connections of the server that Run would start, the first one of
// the account that its banner names. It opens no listener.
func (c *Config) Connections(ctx context.Context) ([]local.Connection, error) {
	if err := c.applyAzurite(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	main, side, err := c.addresses()
	if err != nil {
		return nil, err
	}
	if main.tcp.Port == 0 {
		return nil, usagef("--listen %s: the port is not known before the server runs", c.Listen)
	}
	accounts, err := c.accounts(ctx, main.exposed() || side.exposed())
	if err != nil {
		return nil, err
	}
	return connections(&endpoint{scheme: c.scheme(), host: main.reach(main.tcp)}, accounts), nil
}

// ConnectionFlags are the flags of the command on which a connection depends.
var ConnectionFlags = []string{"account", "listen", "accounts-file", "insecure-dev-key", "cert", "key", "self-signed"}

// noAccountError is the error of an account that a server does not have. It is
// fs.ErrNotExist.
type noAccountError struct {
	what  string
	names []string // of its accounts
}

func (e *noAccountError) Error() string {
	return fmt.Sprintf("%s is not one of the server; there are: %s", e.what, strings.Join(e.names, ", "))
}

func (*noAccountError) Is(target error) bool { return target == fs.ErrNotExist }

// Find returns the connection of the account that c.Accounts names without a key, or else of
// the first one that the command line has with its key, or else of the first one: of the server
// that has c.Data or, if none answers or the command line has other flags of a server, of the
// one that Run would start. typed reports whether a flag is on the command line.
func (c Config) Find(ctx context.Context, typed func(flag string) bool, note func(format string, args ...any)) (local.Connection, error) {
	wanted := ""
	var accounts []string
	for _, text := range c.Accounts {
		if strings.Contains(text, ":") {
			accounts = append(accounts, text)
			continue
		}
		if wanted != "" {
			return local.Connection{}, usagef("--account: name one account")
		}
		wanted = text
	}
	c.Accounts = accounts
	if wanted == "" && len(accounts) > 0 && typed("account") {
		wanted, _, _ = strings.Cut(accounts[0], ":")
	}
	described := len(accounts) > 0 && typed("account") || slices.ContainsFunc(ConnectionFlags[1:], typed)
	var list []local.Connection
	err := error(nil)
	if !described {
		list, err = local.Connections(ctx, c.Data)
	}
	if described || err != nil {
		if list, err = c.Connections(ctx); err != nil {
			return local.Connection{}, err
		}
		if !described {
			note("no server answers in %s; this is for \"tablerock serve\" with the same flags", c.Data)
		}
	}
	var names []string
	for _, one := range list {
		names = append(names, one.Account)
		if wanted == "" || one.Account == wanted {
			return one, nil
		}
	}
	if !typed("account") {
		return local.Connection{}, &noAccountError{"the account of environment variable TABLEROCK_ACCOUNT", names}
	}
	return local.Connection{}, &noAccountError{fmt.Sprintf("account %q", wanted), names}
}

func connections(at *endpoint, accounts []account) []local.Connection {
	var list []local.Connection
	for _, a := range accounts {
		list = append(list, local.Connection{Account: a.name, ConnectionString: at.connectionString(a.name, a.keys[0])})
	}
	return list
}

// answerConnections answers with the connections of the server.
func (h *localHandler) answerConnections(w http.ResponseWriter) {
	var accounts []account
	for _, one := range h.databases() {
		accounts = append(accounts, one.account)
	}
	sendJSON(w, connections(h.at, accounts))
}
