package serve

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// The account that every client library knows as the one of development.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// account is one account to serve.
type account struct {
	name string
	keys []string
	weak bool // keys that can be guessed are in order
}

// accounts returns whom to serve, the one for the connection string first.
// Exposed says that others than this machine can reach the server.
func (c *Config) accounts(exposed bool) ([]account, error) {
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
		more, err := c.readAccounts(c.AccountsFile)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	seen := map[string]bool{}
	for _, a := range list {
		if seen[a.name] {
			return nil, usagef("account %s is given twice; its second key stands behind the first, NAME:KEY1:KEY2", a.name)
		}
		seen[a.name] = true
	}
	switch {
	case seen[developmentAccount]:
		return list, nil
	case !exposed || c.DevelopmentKey:
		return append([]account{{name: developmentAccount, keys: []string{developmentKey}}}, list...), nil
	case len(list) == 0:
		return nil, usagef("%s, or the admin listener, can be reached from outside, and everybody knows the key of %s: give an account of your own with --account NAME:KEY or --accounts-file, "+
			"or say --insecure-dev-key if that is what you want", c.Listen, developmentAccount)
	}
	c.say("without %s, since others can reach this server; --insecure-dev-key would serve it", developmentAccount)
	return list, nil
}

// parseAccount parses NAME:KEY1[:KEY2]. Its errors show no key. Keys that can be
// guessed are taken where Azurite's own variable has them, as its manual does.
func (c *Config) parseAccount(text string) (account, error) {
	parts := strings.Split(text, ":")
	name, keys := parts[0], parts[1:]
	switch {
	case len(keys) == 0:
		return account{}, fmt.Errorf("it has no key; an account is NAME:KEY1[:KEY2]")
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
		return account{}, fmt.Errorf("%s: %w; \"openssl rand -base64 64\" makes a key", name, err)
	}
	return account{name, keys, weak}, nil
}

// readAccounts reads a file of accounts. Empty lines and lines that begin with #
// say nothing.
func (c *Config) readAccounts(name string) ([]account, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("--accounts-file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		err := fmt.Errorf("--accounts-file %s: %w: others than its owner can use it (mode %04o)", name, fs.ErrPermission, info.Mode().Perm())
		return nil, hint.With(err, fmt.Sprintf("run \"chmod 600 %s\"", name))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--accounts-file: %w", err)
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
