// Package where decides where the data of a command is: in a directory, on a server, or in a
// database of PostgreSQL.
package where

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/remote"
)

// azureConnection is the environment variable of the service's own tools.
const azureConnection = "AZURE_STORAGE_CONNECTION_STRING"

// Flags are the flags that select a server in place of a directory.
type Flags struct {
	Connection, Endpoint string
	AccountKey, SAS      string
	Backend              pgbackend.Flags

	typed bool // a credential is on the command line
}

// Server has the data of a command that is not in a directory: an endpoint of the protocol, or
// an account in a database of PostgreSQL.
type Server struct {
	endpoint remote.Endpoint
	backend  *pgbackend.URL // nil for an endpoint
	account  string         // in backend
	options  postgres.Options
}

// Protocol reports whether the server is reached by the Table protocol.
func (s *Server) Protocol() bool { return s.backend == nil }

// String returns where the data is. It has no secret.
func (s *Server) String() string {
	if s.backend != nil {
		return fmt.Sprintf("%s, account %s", s.backend, s.account)
	}
	return s.endpoint.URL
}

// Account returns the name of the account, and for the Table protocol its endpoint.
func (s *Server) Account() (name string, e remote.Endpoint) {
	if s.backend != nil {
		return s.account, e
	}
	return s.endpoint.Account, s.endpoint
}

// Open opens the store. note gets the reasons why the command waits. With wait, it waits for a
// server that starts again.
func (s *Server) Open(ctx context.Context, wait bool, note func(format string, args ...any)) (store.Store, error) {
	if s.backend != nil {
		return pgbackend.Open(ctx, s.backend, s.account, &s.options)
	}
	opened, err := remote.Open(s.endpoint, remote.Options{WaitForServer: wait, Retrying: Retrying(note)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.endpoint.URL, err)
	}
	return opened, nil
}

// Add adds the flags to set.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.StringVar(&f.Connection, connectionFlag, "", "use the server of this connection `string` instead of --data")
	set.StringVar(&f.Endpoint, endpointFlag, "", "use the server at this `URL` instead of --data; without a key and a SAS, sign in by Entra ID")
	f.AddCredentials(set)
}

// AddHidden adds the flags to set without showing them, for a command that refuses a server
// and says why.
func (f *Flags) AddHidden(set *pflag.FlagSet) {
	f.Add(set)
	for _, name := range []string{connectionFlag, endpointFlag, keyFlag, sasFlag} {
		set.Lookup(name).Hidden = true
	}
}

// AddCredentials adds the flags that sign requests to set.
func (f *Flags) AddCredentials(set *pflag.FlagSet) {
	set.StringVar(&f.AccountKey, keyFlag, "", "`key` of the account at the URL; better in TABLEROCK_ACCOUNT_KEY or AZURE_STORAGE_KEY")
	set.StringVar(&f.SAS, sasFlag, "", "shared access `signature` for the URL; better in TABLEROCK_SAS or AZURE_STORAGE_SAS_TOKEN")
}

// Command is what else a command line says.
type Command struct {
	Typed   func(flag string) bool // the flag is on the command line
	Set     func(flag string) bool // the flag is there or in the environment
	Account string                 // the value of --account
	Data    string                 // the value of --data
	Dir     string                 // the directory of the account, for messages
	Note    func(format string, args ...any)
}

const (
	connectionFlag, endpointFlag = "connection-string", "endpoint"
	keyFlag, sasFlag             = "account-key", "sas"
	dataFlag, accountFlag        = "data", "account"
)

// prefer keeps the credential of the command line, if it has one, and not the other of the
// environment.
func (f *Flags) prefer(typed func(flag string) bool) {
	key, sas := typed(keyFlag), typed(sasFlag)
	switch {
	case key && !sas:
		f.SAS = ""
	case sas && !key:
		f.AccountKey = ""
	}
	f.typed = key || sas
}

// Help describes the flags that select a server.
const Help = `

With --connection-string or --endpoint the command works on a server: the real service,
Azurite, or "tablerock serve"; with --backend in a database of PostgreSQL. Without them and
without --data it uses AZURE_STORAGE_CONNECTION_STRING if that is set.`

// named returns the flags that say where the data is: those of the command line or, if it
// has none, of the environment.
func (c *Command) named() []string {
	var typed, inEnvironment []string
	for _, flag := range []string{dataFlag, connectionFlag, endpointFlag, pgbackend.Flag} {
		switch {
		case c.Typed(flag):
			typed = append(typed, flag)
		case c.Set(flag):
			inEnvironment = append(inEnvironment, flag)
		}
	}
	if len(typed) == 0 {
		return inEnvironment
	}
	return typed
}

// NamesBackend reports whether the command line, or else the environment, says that the data
// is in a database of PostgreSQL. What it names beside it is an error of Choose.
func (c *Command) NamesBackend() bool { return slices.Contains(c.named(), pgbackend.Flag) }

// Of returns the server that a command with these arguments uses, or nil for its directory or
// if it uses none. Every error is one of the command line, and has no secret.
func (f *Flags) Of(cmd *cobra.Command, c Command, args []string) (*Server, error) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if strings.HasPrefix(path, cobra.ShellCompRequestCmd) {
		return nil, nil // its arguments are the flags of another command
	}
	stray := slices.ContainsFunc(args, pgbackend.Is) || pgbackend.Is(c.Data)
	if stray || c.NamesBackend() {
		if text := pgbackend.Instead(path, stray || c.Typed(pgbackend.Flag)); text != "" {
			return nil, errors.New(text)
		}
	}
	switch name, _, _ := strings.Cut(path, " "); {
	case stray && name != "backend":
		return nil, errBackend
	case name == "copy" && c.Typed(dataFlag):
		return nil, errors.New("--data: name the directories with --from and --to")
	case name == "copy" && c.Typed(pgbackend.Flag):
		return nil, errors.New("--backend: give the database with --from or --to")
	case cmd.Flags().Lookup(endpointFlag) != nil:
		return f.choose(c)
	case name == "stats" && c.NamesBackend():
		return f.backend(&c)
	}
	return nil, nil
}

// choose returns the server that a command uses, or nil for its directory. What the command
// line names precedes the environment, and both precede AZURE_STORAGE_CONNECTION_STRING.
func (f *Flags) choose(c Command) (*Server, error) {
	f.prefer(c.Typed)
	named := c.named()
	azure := os.Getenv(azureConnection)
	switch {
	case len(named) > 1:
		return nil, fmt.Errorf("--%s and --%s exclude each other: name one of them", named[0], named[1])
	case len(named) == 0 && azure == "":
		return nil, f.refuseCredentials()
	case len(named) == 0:
		return f.connection(&c, azure, azureConnection, true)
	case named[0] == connectionFlag:
		return f.connection(&c, f.Connection, "--"+connectionFlag, !c.Typed(connectionFlag))
	case named[0] == endpointFlag:
		return f.endpoint(&c)
	case named[0] == pgbackend.Flag:
		return f.backend(&c)
	}
	if azure != "" {
		c.Note("using %s, which --data names, and not %s", c.Dir, azureConnection)
	}
	return nil, f.refuseCredentials()
}

// refuseCredentials returns an error if the command line has credentials without an
// endpoint. Those of the environment are for commands that have one.
func (f *Flags) refuseCredentials() error {
	if f.typed {
		return errors.New("--account-key and --sas need --endpoint")
	}
	return nil
}

// connection returns the server of a connection string, the value of name.
func (f *Flags) connection(c *Command, text, name string, say bool) (*Server, error) {
	if err := f.refuseCredentials(); err != nil {
		return nil, err
	}
	e, err := remote.ParseConnectionString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c.choose(e, name, say)
}

// errBackend is the error of a URL of PostgreSQL for another flag.
var errBackend = errors.New("a database of PostgreSQL is given with --backend")

// backend returns the account in the database of --backend.
func (f *Flags) backend(c *Command) (*Server, error) {
	if err := f.refuseCredentials(); err != nil {
		return nil, err
	}
	s, err := f.account(f.Backend.URL, c.Account, c.Typed(accountFlag))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", pgbackend.Flag, err)
	}
	if c.Typed(pgbackend.Flag) {
		s.backend.WarnPassword(c.Note)
	} else {
		c.Note("using %s, the database of %s", s, variable("--"+pgbackend.Flag))
	}
	return s, nil
}

// account returns an account in the database at a URL: the one that the URL names, or else
// the one called name, which must be the same if it is given.
func (f *Flags) account(text, name string, given bool) (*Server, error) {
	u, err := pgbackend.Parse(text)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Account() != "" && given && u.Account() != name:
		return nil, fmt.Errorf("--account %s is not the account %s of the URL", name, u.Account())
	case u.Account() != "":
		name = u.Account()
	}
	return &Server{backend: u, account: name, options: postgres.Options{AllowAsync: f.Backend.AllowAsync}}, nil
}

// endpoint returns the server at --endpoint.
func (f *Flags) endpoint(c *Command) (*Server, error) {
	if pgbackend.Is(f.Endpoint) {
		return nil, errBackend
	}
	e, err := remote.ParseURL(f.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("--endpoint: %w", err)
	}
	if e, err = f.Sign(e); err != nil {
		return nil, err
	}
	return c.choose(e, "--"+endpointFlag, !c.Typed(endpointFlag))
}

// Sign adds the credentials of the flags and of the environment to an endpoint that has
// none.
func (f *Flags) Sign(e remote.Endpoint) (remote.Endpoint, error) {
	key, sas := f.AccountKey, f.SAS
	if key != "" && sas != "" {
		return e, errors.New("--account-key and --sas exclude each other")
	}
	if key == "" && sas == "" && e.SAS == "" && e.Key == "" {
		key, sas = os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN")
	}
	switch {
	case key != "":
		e.Key, e.SAS = key, ""
	case sas != "":
		e.Key, e.SAS = "", strings.TrimPrefix(sas, "?")
	case e.Key == "" && e.SAS == "":
		if !strings.HasPrefix(e.URL, "https://") {
			return e, fmt.Errorf("%s needs --account-key or --sas, because Entra ID needs https", e.URL)
		}
		e.Entra = true
	}
	return e, nil
}

// choose returns e, which name names, unless its account is not the one of the command line.
func (c *Command) choose(e remote.Endpoint, name string, say bool) (*Server, error) {
	if c.Typed(accountFlag) && e.Account != c.Account {
		return nil, fmt.Errorf("--account %s is not the account %s of %s", c.Account, e.Account, name)
	}
	if err := checkKey(e); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if say {
		c.Note("using %s, the server of %s", e.URL, variable(name))
	}
	return &Server{endpoint: e}, nil
}

// variable returns the environment variable of a flag with its dashes, and the name of any
// other variable as it is.
func variable(name string) string {
	flag, ok := strings.CutPrefix(name, "--")
	if !ok {
		return name
	}
	return "TABLEROCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// checkKey returns an error without the key if the key of e cannot be one.
func checkKey(e remote.Endpoint) error {
	if _, err := base64.StdEncoding.DecodeString(e.Key); err != nil {
		return fmt.Errorf("the key of account %s is not base64: copy all of it, with its = at the end", e.Account)
	}
	return nil
}

// Location is a directory or a server.
type Location struct {
	Dir    string
	Server *Server // nil for a directory
}

// isHostPort reports whether text, which is no path of a directory that exists, begins with a host and a port.
func isHostPort(text string) bool {
	first, _, _ := strings.Cut(text, "/")
	host, port, err := net.SplitHostPort(first)
	if err != nil || host == "" {
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	_, err = os.Stat(text)
	return err != nil
}

// Parse returns the locations of texts, each a directory, the URL of a server or of a database
// of PostgreSQL, or a connection string. The credentials of f are for the URL of a server
// among them that has no signature. A URL of a database names the account, or else it is that
// of c.
func (f *Flags) Parse(c Command, texts ...string) ([]Location, error) {
	f.prefer(c.Typed)
	var list []Location
	var unsigned []*remote.Endpoint
	for _, text := range texts {
		lower := strings.ToLower(text)
		s := &Server{}
		var err error
		switch {
		case text == "":
			err = errors.New("WHERE is empty: give a directory, a URL or a connection string")
		case pgbackend.Is(text):
			if s, err = f.account(text, c.Account, false); err == nil {
				s.backend.WarnPassword(c.Note)
			}
		case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
			if s.endpoint, err = remote.ParseURL(text); err == nil && s.endpoint.SAS == "" {
				unsigned = append(unsigned, &s.endpoint)
			}
		case strings.Contains(lower, "tableendpoint="), strings.Contains(lower, "accountname="), strings.Contains(lower, "usedevelopmentstorage="):
			s.endpoint, err = remote.ParseConnectionString(text)
		case isHostPort(text):
			address, account, _ := strings.Cut(strings.TrimRight(text, "/"), "/")
			err = fmt.Errorf("%s is the address of a server: write http://%s/%s", text, address, cmp.Or(account, "ACCOUNT"))
		case hint.IsURL(text):
			err = errors.New("a URL begins with http://, https:// or postgres://")
		default:
			list = append(list, Location{Dir: text})
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Location{Server: s})
	}
	if len(unsigned) == 0 && f.typed || len(unsigned) > 1 && (f.AccountKey != "" || f.SAS != "") {
		return nil, errors.New("--account-key and --sas need one URL without a signature; give connection strings")
	}
	for _, e := range unsigned {
		signed, err := f.Sign(*e)
		if err != nil {
			return nil, err
		}
		*e = signed
	}
	for _, l := range list {
		if l.Server != nil {
			if err := checkKey(l.Server.endpoint); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}
