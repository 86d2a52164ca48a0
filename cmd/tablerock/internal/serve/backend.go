package serve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
)

// pingTime limits the time to ask the databases of PostgreSQL whether they can serve.
const pingTime = 3 * time.Second

// parseBackend sets c.backend.
func (c *Config) parseBackend() error {
	if c.Backend.URL == "" {
		return nil
	}
	u, err := pgbackend.Parse(c.Backend.URL)
	switch {
	case err != nil:
		return usagef("--backend: %v", err)
	case u.Account() != "":
		return usagef("--backend: remove the parameter account of the URL: the server's accounts are those of --account or --accounts-file")
	case c.typed(pgbackend.Flag):
		u.WarnPassword(c.say)
	}
	c.backend = u
	return nil
}

// checkBackend returns an error if the command line has a flag for databases of PostgreSQL and
// no account is in one. An accounts file can name one later.
func (c *Config) checkBackend(accounts []account) error {
	if c.AccountsFile != "" || slices.ContainsFunc(accounts, func(a account) bool { return a.backend != nil }) {
		return nil
	}
	flag := ""
	switch {
	case c.Backend.AllowAsync && c.typed(pgbackend.AsyncFlag):
		flag = pgbackend.AsyncFlag
	case c.typed("backend-conns"):
		flag = "backend-conns"
	default:
		return nil
	}
	return usagef("--%s is for databases of PostgreSQL: add --backend URL, or give an account as --account NAME:KEY@URL", flag)
}

// checkBackups returns an error if --backup-dir has nothing to back up.
func (c *Config) checkBackups(accounts []account) error {
	if c.BackupDir == "" {
		return nil
	}
	elsewhere := 0
	for _, a := range accounts {
		if a.backend != nil {
			elsewhere++
		}
	}
	switch elsewhere {
	case 0:
	case len(accounts):
		return usagef("--backup-dir: %s", pgbackend.Instead("backup", true))
	default:
		c.say("--backup-dir is for the accounts in %s: back up PostgreSQL by its own tools", c.Data)
	}
	return nil
}

// ping returns why the databases of PostgreSQL cannot serve, or nil.
func (s *databaseSet) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return s.backends.Ping(ctx)
}

// bannerData prints where the data is, and for PostgreSQL which promises hold.
func (c *Config) bannerData(dbs databases) {
	label := "data"
	say := func(text, value string) {
		fmt.Fprintf(c.Stdout, "%-16s  %s\n", label, text+value)
		label = ""
	}
	local := c.Data
	if c.InMemory {
		local = "in memory"
	}
	accountsOf, list := map[string]string{}, []string{}
	for _, one := range dbs {
		where := local
		if one.backend != nil {
			where = one.backend.String()
		}
		if accountsOf[where] == "" {
			list = append(list, where)
		}
		accountsOf[where] += " " + one.name
	}
	for _, where := range list {
		accounts := ""
		if len(list) > 1 {
			accounts = " (" + accountsOf[where][1:] + ")"
		}
		say(where, accounts)
	}
	if len(dbs.local()) == len(dbs) {
		return
	}
	hold, not := pgbackend.Names(c.Backend.AllowAsync)
	label = "promises"
	say(hold, " hold with PostgreSQL (docs/reliability.md)")
	if c.Backend.AllowAsync {
		not += ", because of --allow-async: a failover can lose the newest writes"
	}
	say("not: ", not)
}
