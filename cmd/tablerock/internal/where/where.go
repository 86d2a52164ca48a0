// Package where decides where the data of a command is: in a directory, or on a server.
package where

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/store/remote"
)

// azureConnection is the environment variable of the service's own tools.
const azureConnection = "AZURE_STORAGE_CONNECTION_STRING"

// Flags are the flags that select a server in place of a directory.
type Flags struct {
	Connection, Endpoint string
	AccountKey, SAS      string

	typed bool // a credential is on the command line
}

// Add adds the flags to set.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.StringVar(&f.Connection, connectionFlag, "", "use the server of this connection `string` instead of --data")
	set.StringVar(&f.Endpoint, endpointFlag, "", "use the server at this `URL` instead of --data; without a key and a SAS, sign in by Entra ID")
	f.AddCredentials(set)
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
Azurite, or "tablerock serve". Without them and without --data it uses
AZURE_STORAGE_CONNECTION_STRING if that is set.`

// Choose returns the server that a command uses, or nil for its directory. What the command
// line names precedes the environment, and both precede AZURE_STORAGE_CONNECTION_STRING.
// Every error is one of the command line, and has no secret.
func (f *Flags) Choose(c Command) (*remote.Endpoint, error) {
	f.prefer(c.Typed)
	var named, inEnvironment []string
	for _, flag := range []string{dataFlag, connectionFlag, endpointFlag} {
		switch {
		case c.Typed(flag):
			named = append(named, flag)
		case c.Set(flag):
			inEnvironment = append(inEnvironment, flag)
		}
	}
	if len(named) == 0 {
		named = inEnvironment
	}
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
func (f *Flags) connection(c *Command, text, name string, say bool) (*remote.Endpoint, error) {
	if err := f.refuseCredentials(); err != nil {
		return nil, err
	}
	e, err := remote.ParseConnectionString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c.choose(e, name, say)
}

// endpoint returns the server at --endpoint.
func (f *Flags) endpoint(c *Command) (*remote.Endpoint, error) {
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
func (c *Command) choose(e remote.Endpoint, name string, say bool) (*remote.Endpoint, error) {
	if c.Typed(accountFlag) && e.Account != c.Account {
		return nil, fmt.Errorf("--account %s is not the account %s of %s", c.Account, e.Account, name)
	}
	if say {
		c.Note("using %s, the server of %s", e.URL, strings.TrimPrefix(name, "--"))
	}
	return &e, nil
}

// Location is a directory or a server.
type Location struct {
	Dir    string
	Server *remote.Endpoint // nil for a directory
}

// Parse returns the locations of texts, each a directory, the URL of a server or a
// connection string. The credentials of f are for the URL among them that has no signature.
// typed reports whether a flag is on the command line.
func (f *Flags) Parse(typed func(flag string) bool, texts ...string) ([]Location, error) {
	f.prefer(typed)
	var list []Location
	var unsigned []*remote.Endpoint
	for _, text := range texts {
		lower := strings.ToLower(text)
		var e remote.Endpoint
		var err error
		switch {
		case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
			if e, err = remote.ParseURL(text); err == nil && e.SAS == "" {
				unsigned = append(unsigned, &e)
			}
		case strings.Contains(lower, "tableendpoint="), strings.Contains(lower, "accountname="), strings.Contains(lower, "usedevelopmentstorage="):
			e, err = remote.ParseConnectionString(text)
		default:
			list = append(list, Location{Dir: text})
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Location{Server: &e})
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
	return list, nil
}
