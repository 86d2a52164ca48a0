package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/datadir"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/recent"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/livestate"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// Explore is the command tablerock explore.
type Explore struct {
	Listen    string
	PrintLink bool // to Stdout
	NoBrowser bool

	Version        string
	Stdout, Stderr io.Writer
}

// ErrNotLoopback means that other machines can reach the address of --listen.
var ErrNotLoopback = errors.New("give an address of loopback; \"tablerock serve\" has pages for other machines")

// Help describes the command.
const Help = `Show and change the data in a browser: tables, entities, queries, import and export,
access, and the engine at work. WHERE is a directory as in --data, the URL of a server, or
a connection string: the real service, Azurite, or "tablerock serve".

The command serves pages on loopback until Ctrl-C, opens a browser, and prints a link that
logs in once, within 10 minutes. If "tablerock serve" has the directory, it prints a link
to the pages of that server.

  tablerock explore tablerock-data` + where.Help

// Flags adds the flags of the command.
func (e *Explore) Flags(f *pflag.FlagSet) {
	f.StringVar(&e.Listen, "listen", "127.0.0.1:0", "`address` of the pages, on loopback; port 0 selects a free one; also by TABLEROCK_EXPLORE_LISTEN")
	f.BoolVar(&e.PrintLink, "print-link", false, "print the link to standard output, also if that is no terminal: keep it out of logs")
	f.BoolVar(&e.NoBrowser, "no-browser", false, "open no browser")
}

// Run serves the pages of a server, or of the directory data if it is nil, until ctx is done.
// If "tablerock serve" has the directory, it opens the pages of that server and returns.
func (e *Explore) Run(ctx context.Context, at *where.Server, data string, note func(format string, args ...any)) (err error) {
	if at != nil {
		return e.exploreServer(ctx, at, note)
	}
	names, err := datadir.Accounts(data)
	names = slices.DeleteFunc(names, func(name string) bool { return !sharedkey.IsAccountName(name) })
	if err == nil && len(names) == 0 {
		err = hint.NoDatabase(data, "--data")
	}
	if err != nil {
		return err
	}
	opened := &opened{}
	defer func() { err = errors.Join(err, opened.close()) }()
	for _, name := range names {
		err := opened.open(data, name)
		if errors.Is(err, store.ErrLocked) {
			link, linkErr := local.Link(ctx, data)
			if linkErr == nil {
				browser, err := e.show(link)
				browser.wait(ctx)
				browser.close()
				return err
			}
			err = ofServer(err, linkErr)
		}
		if err != nil {
			return err
		}
	}
	return e.exploreDirectory(ctx, opened)
}

// ofServer returns err, that a database is locked, with the reason why the process that has it
// gave no link to its pages, if it is a server, and what to do.
func ofServer(err, linkErr error) error {
	switch {
	case errors.Is(linkErr, local.ErrNoPages):
		return hint.With(fmt.Errorf("%w; its pages are off", err),
			`start it with --ui on and an address in --admin, or explore it by its protocol: give the text of "tablerock connection-string"`)
	case errors.Is(linkErr, context.DeadlineExceeded):
		return hint.With(fmt.Errorf("%w; that server does not answer", err), "stop it, or wait for it")
	}
	return err
}

// opened is a set of open databases.
type opened struct {
	cache *engine.Cache
	list  []*Database
	names []string
}

// exploreCache is the size of the block cache.
const exploreCache = 48 << 20

func (o *opened) open(data, name string) error {
	if o.cache == nil {
		o.cache = engine.NewCache(exploreCache)
	}
	jobs := &Jobs{}
	const segment = 4 << 20
	dir := filepath.ToSlash(filepath.Join(data, name))
	db, err := engine.Open(dir, engine.Options{Cache: o.cache, SegmentBytes: segment, Logger: slog.New(jobs)})
	if err != nil {
		return hint.Open(err)
	}
	o.list, o.names = append(o.list, &Database{DB: db, Dir: dir, SegmentBytes: segment, Jobs: jobs}), append(o.names, name)
	return nil
}

func (o *opened) close() error {
	var errs []error
	for _, d := range o.list {
		errs = append(errs, d.DB.Close())
	}
	return errors.Join(errs...)
}

// exploreDirectory serves the pages of databases.
func (e *Explore) exploreDirectory(ctx context.Context, o *opened) error {
	m := recent.New(time.Now)
	var list []explorer.Account
	for i, d := range o.list {
		a, err := accountAlone(o.names[i], d.DB, d.Dir)
		if err != nil {
			return err
		}
		d.describe(&a)
		a.Store = &observed{d.DB, a.Name, m}
		list = append(list, a)
	}
	opts := Options(e.Version, slog.New(slog.NewTextHandler(e.Stderr, nil)), m)
	opts.Cache = func() *livestate.Cache { return CacheOf(o.list[0].DB, exploreCache) }
	opts.Sums = func() map[string]float64 { return Sums(o.dbs()) }
	return e.serve(ctx, opts, list)
}

func (o *opened) dbs() (list []*engine.DB) {
	for _, d := range o.list {
		list = append(list, d.DB)
	}
	return list
}

// CacheOf returns the state of the cache of a database.
func CacheOf(db *engine.DB, limit int64) *livestate.Cache {
	s, err := db.Stats()
	if err != nil {
		return nil
	}
	return &livestate.Cache{Hits: s.CacheHits, Misses: s.CacheMisses, Bytes: limit}
}

// exploreServer serves the pages of the account of a server or of a database.
func (e *Explore) exploreServer(ctx context.Context, at *where.Server, note func(format string, args ...any)) (err error) {
	s, err := at.Open(ctx, false, note) // the user of a page sees the error at once
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m := recent.New(time.Now)
	var a explorer.Account
	if at.Protocol() {
		a, err = protocolAccount(at, s)
	} else {
		name, _ := at.Account()
		a, err = accountAlone(name, s, at.String())
	}
	if err != nil {
		return err
	}
	a.Store = &observed{s, a.Name, m}
	o := Options(e.Version, slog.New(slog.NewTextHandler(e.Stderr, nil)), m)
	if at.Protocol() {
		o.Problem = problemOf(at.String())
	}
	return e.serve(ctx, o, []explorer.Account{a})
}

// protocolAccount returns the account of a server for the pages.
func protocolAccount(at *where.Server, s store.Store) (a explorer.Account, err error) {
	name, endpoint := at.Account()
	a = explorer.Account{Name: name, Where: endpoint.URL, Endpoint: endpoint.URL, TransactionBytes: bulk.BatchBytes, Clear: clearOf(s)}
	if a.Name == "" {
		a.Name = "account" // that of the host is not known
	}
	if endpoint.Key != "" {
		if a.Credential, err = sharedkey.NewWeakCredential(name, endpoint.Key); err != nil {
			return a, err
		}
		p := &Protocol{URL: endpoint.URL, Credential: a.Credential, Send: (&http.Client{Timeout: time.Minute}).Do}
		a.Policies, a.SetPolicies = p.Policies, p.SetPolicies
	}
	return a, nil
}

// accountAlone returns the account of a store without a server for the pages. It gets a key
// for this run, by which the pages use the protocol; no client can.
func accountAlone(name string, s store.Store, where string) (explorer.Account, error) {
	of := Owner{Name: name, Keys: []string{newKey()}}
	var err error
	if of.Handler, err = server.New(server.Options{Accounts: []server.Account{{Name: name, Keys: of.Keys, Store: s}}}); err != nil {
		return explorer.Account{}, err
	}
	a, err := of.Account(s, where)
	a.Keys, a.Credential = nil, nil
	return a, err
}

// serve serves the pages of accounts until ctx is done.
func (e *Explore) serve(ctx context.Context, o explorer.Options, list []explorer.Account) error {
	addr, err := net.ResolveTCPAddr("tcp", e.Listen)
	if err != nil || !addr.IP.IsLoopback() {
		return fmt.Errorf("--listen %q: %w", e.Listen, ErrNotLoopback)
	}
	l, err := net.ListenTCP("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return hint.With(fmt.Errorf("--listen %s: %w", addr, syscall.EADDRINUSE), "choose another address (port 0 selects a free one)")
	}
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	o.Accounts = func() []explorer.Account { return list }
	o.Cookie = fmt.Sprintf("tablerock-%d", l.Addr().(*net.TCPAddr).Port)
	h, err := explorer.New(o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	mux := http.NewServeMux()
	mux.Handle(explorer.Root, h)
	mux.Handle("GET /{$}", http.RedirectHandler(explorer.Root, http.StatusSeeOther))
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.NewTextHandler(e.Stderr, nil), slog.LevelError),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // an error means that it is closed
	defer stop()
	defer h.Close()
	address := "http://" + l.Addr().String()
	fmt.Fprintf(e.Stderr, "the explorer is at %s%s until Ctrl-C\n", address, explorer.Root)
	browser, err := e.show(address + h.LoginPath())
	if err != nil {
		return errors.Join(err, srv.Close(), l.Close())
	}
	defer browser.close()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// show prints a link and opens it. Close the result, also if it is nil.
func (e *Explore) show(link string) (*opening, error) {
	if e.PrintLink {
		_, err := fmt.Fprintln(e.Stdout, link)
		return nil, err
	}
	if !progress.IsTerminal(e.Stderr) {
		fmt.Fprintln(e.Stderr, "the link that logs in is printed on a terminal only; --print-link prints it to standard output")
		return nil, nil
	}
	fmt.Fprintf(e.Stderr, "log in, within 10 minutes and once, at\n  %s\n", link)
	if e.NoBrowser {
		return nil, nil
	}
	browser, err := openBrowser(link)
	if err != nil {
		return nil, nil // the user opens the link
	}
	return browser, nil
}
