// Package ui connects the pages of package explorer to databases, servers and the command
// line.
package ui

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/recent"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/livestate"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// Owner is an account and how clients use it.
type Owner struct {
	Name     string
	Keys     []string     // in base64
	Weak     bool         // Keys can be short
	Endpoint string       // the URL of its tables for clients, "" without one
	Handler  http.Handler // of the protocol
}

// Account returns the account of a store for the pages. The text says where its data is.
func (of *Owner) Account(s store.Store, where string) (a explorer.Account, err error) {
	a = explorer.Account{Name: of.Name, Where: where, Store: s, Endpoint: of.Endpoint, Clear: clearOf(s)}
	newKeys, newCredential := sharedkey.NewKeys, sharedkey.NewCredential
	if of.Weak {
		newKeys, newCredential = sharedkey.NewWeakKeys, sharedkey.NewWeakCredential
	}
	if a.Keys, err = newKeys(of.Keys...); err != nil {
		return a, err
	}
	if a.Credential, err = newCredential(of.Name, of.Keys[0]); err != nil {
		return a, err
	}
	p := &Protocol{URL: "http://localhost/" + of.Name, Credential: a.Credential, Send: Through(of.Handler)}
	a.Policies, a.SetPolicies = p.Policies, p.SetPolicies
	return a, nil
}

// Account returns the account of the database for the pages.
func (d *Database) Account(of Owner) (explorer.Account, error) {
	a, err := of.Account(d.DB, filepath.FromSlash(d.Dir))
	d.describe(&a)
	return a, err
}

// describe adds what the engine offers beyond a store.
func (d *Database) describe(a *explorer.Account) {
	name := a.Name
	a.Stats, a.Load = d.DB.TableStats, d.load
	a.Engine = func() (livestate.Engine, error) { return d.State(name) }
	a.Snapshot = func() (transfer.Querier, func(), error) {
		s, err := d.DB.Snapshot()
		if err != nil {
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil // it only frees memory
	}
}

// load is the transfer.LoadFunc of the database.
func (d *Database) load(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error], installed func(int64)) error {
	_, err := d.DB.Load(ctx, table, entities, engine.LoadOptions{Installed: func(r engine.LoadResult) { installed(r.Entities) }})
	return err
}

// clearOf returns the Clear of an account.
func clearOf(s store.Store) func(context.Context, string, func(int64)) error {
	return func(ctx context.Context, table string, progress func(int64)) error {
		_, err := bulk.Delete(ctx, s, table, nil, progress)
		return err
	}
}

// Options returns the options of the pages that do not depend on where the data is.
func Options(version string, log *slog.Logger, m *recent.Monitor) explorer.Options {
	return explorer.Options{Problem: server.Problem, Requests: m.Read, Version: version, Log: log, Now: time.Now}
}

// Sums returns the counters of databases for the history of the pages.
func Sums(list []*engine.DB) map[string]float64 {
	sums := map[string]float64{}
	for _, db := range list {
		s, err := db.Stats()
		if err != nil {
			continue
		}
		for name, v := range figures(&s) {
			switch v := v.(type) {
			case int:
				sums[name] += float64(v)
			case int64:
				sums[name] += float64(v)
			case uint64:
				sums[name] += float64(v)
			case float64:
				sums[name] += v
			}
		}
	}
	return sums
}

// PrintLink prints a link that logs in, if w is a terminal: a log must not have it.
func PrintLink(w io.Writer, address string, h *explorer.Handler) {
	if progress.IsTerminal(w) {
		fmt.Fprintf(w, "log in, within 10 minutes and once, at\n  %s%s\n", address, h.LoginPath())
	}
}
