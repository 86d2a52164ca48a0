package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// The development account that every client library knows.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// account is one account to serve.
type account struct {
	name string
	keys []string
	weak bool // short keys are allowed

	backend *pgbackend.URL // nil for a directory
}

// accounts returns the accounts to serve. The first one is that of the connection string.
// exposed means that other machines can reach the server.
func (c *Config) accounts(ctx context.Context, exposed bool) ([]account, error) {
	var list []account
	for _, text := range c.Accounts {
		for i, one := range strings.Split(text, ";") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			a, err := c.parseAccount(one)
			if err != nil {
				return nil, usagef("account %d of --account or TABLEROCK_ACCOUNT: %v", i+1, err)
			}
			list = append(list, a)
		}
	}
	if c.AccountsFile != "" {
		more, err := c.readAccounts(ctx, c.AccountsFile)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	seen, local := map[string]bool{}, len(list) == 0
	for _, a := range list {
		local = local || a.backend == nil
		if seen[a.name] {
			return nil, usagef("account %s is given twice; write its second key after the first, NAME:KEY1:KEY2", a.name)
		}
		seen[a.name] = true
	}
	switch {
	case seen[developmentAccount]:
		return list, nil
	case !exposed && !c.DevelopmentKey && c.backend == nil && !local:
		return list, nil // it alone would need the data directory
	case !exposed || c.DevelopmentKey:
		return append([]account{{name: developmentAccount, keys: []string{developmentKey}, backend: c.backend}}, list...), nil
	case len(list) == 0:
		return nil, usagef("other machines can reach %s or the admin listener, and the key of %s is public: "+
			"give your own account with --account NAME:KEY or --accounts-file, "+
			"or use --insecure-dev-key", c.Listen, developmentAccount)
	}
	c.say("not serving %s, because other machines can reach this server; --insecure-dev-key would serve it", developmentAccount)
	return list, nil
}

// parseAccount parses NAME:KEY1[:KEY2][@URL]. Its errors contain no key and no password. It
// accepts short keys from AZURITE_ACCOUNTS only, because Azurite's manual has such examples.
func (c *Config) parseAccount(text string) (account, error) {
	text, at, hasBackend := strings.Cut(text, "@")
	fields := strings.Split(text, ":")
	name, keys := fields[0], fields[1:]
	switch {
	case len(keys) == 0:
		return account{}, fmt.Errorf("it has no key; write NAME:KEY1[:KEY2]")
	case !sharedkey.IsAccountName(name):
		return account{}, fmt.Errorf("its name is not 3 to 24 lower-case letters and digits")
	}
	_, err := sharedkey.NewKeys(keys...)
	weak := false
	if err != nil && c.azuriteAccounts {
		if _, err = sharedkey.NewWeakKeys(keys...); err == nil {
			weak = true
			c.say("account %s has a key of fewer than %d bytes, which can be guessed", name, sharedkey.SafeKeyBytes)
		}
	}
	if err != nil {
		return account{}, fmt.Errorf("%s: %w; create a key with \"openssl rand -base64 48\"", name, err)
	}
	backend := c.backend
	if hasBackend {
		if backend, err = pgbackend.Parse(at); err != nil {
			return account{}, fmt.Errorf("%s: after the @: %w", name, err)
		}
		if backend.Account() != "" && backend.Account() != name {
			return account{}, fmt.Errorf("%s: the URL names another account", name)
		}
	}
	return account{name, keys, weak, backend}, nil
}

// readAccounts reads a file of accounts. It ignores empty lines and lines that start with
// #. The file can be a pipe, so that the keys need not be on a disk.
func (c *Config) readAccounts(ctx context.Context, name string) ([]account, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, hint.Input("--accounts-file", err)
	}
	if info.Mode().Perm()&0o077 != 0 && !info.IsDir() && runtime.GOOS != "windows" {
		err := fmt.Errorf("--accounts-file %s: %w: users other than its owner can access it (mode %04o)", name, fs.ErrPermission, info.Mode().Perm())
		return nil, hint.With(err, fmt.Sprintf("run \"chmod 600 %s\"", name))
	}
	var text []byte
	if info.Mode()&fs.ModeNamedPipe != 0 { // as of a process substitution
		c.say("reading the accounts from the pipe %s, which can be read once", name)
		text, err = openfile.Read(ctx, name)
	} else {
		text, err = openfile.ReadRegular(name)
	}
	if err != nil {
		return nil, unreadable("--accounts-file", err)
	}
	if strings.TrimSpace(string(text)) == "" { // as while another program writes it
		return nil, usagef("--accounts-file %s is empty; without an account it needs a line that starts with #", name)
	}
	var list []account
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		a, err := c.parseAccount(line)
		if err != nil {
			return nil, usagef("%s:%d: %v", name, i+1, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// unreadable returns the error of a flag whose file could not be read because of err.
func unreadable(flag string, err error) error {
	switch {
	case errors.Is(err, openfile.ErrIrregular):
		return usagef("%s: %v", flag, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return hint.Input(flag, err)
}
