package serve

import (
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// azurite has the flags of Azurite, so that a script can replace Azurite by changing the
// name of the program. The help does not list them.
type azurite struct {
	set *pflag.FlagSet // only these flags, nil without a call of Config.Flags

	host, port, location, debug, password string
	silent, inMemory                      bool

	unusedText   string
	unusedSwitch bool
}

// sharedFlags are flags of Azurite that have the same name and meaning here.
var sharedFlags = []string{"oauth", "cert", "key"}

// Flags without a meaning here. Those in alwaysOn request the behaviour that the server has
// anyway; the others are ignored with a note.
var (
	alwaysOn       = []string{"skipApiVersionCheck", "disableTelemetry"}
	unusedSwitches = []string{"disableProductStyleUrl"}
	unusedValues   = []string{
		"tableKeepAliveTimeout", "blobHost", "blobPort", "blobKeepAliveTimeout",
		"queueHost", "queuePort", "queueKeepAliveTimeout", "extentMemoryLimit",
	}
)

func (a *azurite) flags(all *pflag.FlagSet) {
	f := pflag.NewFlagSet("azurite", pflag.ContinueOnError)
	f.StringVar(&a.host, "tableHost", "", "host of --listen")
	f.StringVar(&a.port, "tablePort", "", "port of --listen")
	f.StringVarP(&a.location, "location", "l", "", "--data")
	f.StringVarP(&a.debug, "debug", "d", "", "file of the log for debugging")
	f.StringVar(&a.password, "pwd", "", "password of a PFX file")
	f.BoolVarP(&a.silent, "silent", "s", false, "--quiet")
	f.BoolVar(&a.inMemory, "inMemoryPersistence", false, "--in-memory")
	f.BoolVarP(&a.unusedSwitch, "loose", "L", false, "no meaning")
	for _, name := range append(alwaysOn, unusedSwitches...) {
		f.BoolVar(&a.unusedSwitch, name, false, "no meaning")
	}
	for _, name := range unusedValues {
		f.StringVar(&a.unusedText, name, "", "no meaning")
	}
	f.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
	all.AddFlagSet(f)
	a.set = f
}

// IsAzuriteFlag reports whether the argument is a flag of Azurite, with or without a value.
// A few of them are flags of tablerock serve, too.
func IsAzuriteFlag(arg string) bool {
	var c Config
	c.Flags(pflag.NewFlagSet("serve", pflag.ContinueOnError))
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		name, _, _ = strings.Cut(name, "=")
		return slices.Contains(sharedFlags, name) || c.azurite.set.Lookup(name) != nil
	}
	return len(arg) > 1 && arg[0] == '-' && c.azurite.set.ShorthandLookup(arg[1:2]) != nil
}

// applyAzurite copies the flags and the environment of Azurite to c.
func (c *Config) applyAzurite() error {
	a := &c.azurite
	if a.host != "" || a.port != "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return usagef("--listen %q is not host:port", c.Listen)
		}
		if a.host != "" {
			host = a.host
		}
		if a.port != "" {
			port = a.port
		}
		c.Listen = net.JoinHostPort(host, port)
	}
	if a.location != "" && c.typed("data") {
		return usagef("--location and --data exclude each other: name one of them")
	}
	if a.location != "" {
		c.Data = a.location
	}
	if a.password != "" {
		return usagef("--pwd: PFX files are not supported; " +
			"convert yours to PEM with \"openssl pkcs12 -nodes -in FILE.pfx -out FILE.pem\" and give FILE.pem as --cert and --key")
	}
	if a.debug != "" {
		c.DebugLog = a.debug
	}
	c.Quiet = c.Quiet || a.silent
	c.InMemory = c.InMemory || a.inMemory
	for _, name := range append(unusedValues, append(unusedSwitches, "loose")...) {
		if a.set.Changed(name) {
			c.say("--%s has no meaning here and is ignored", name)
		}
	}
	if list := os.Getenv("AZURITE_ACCOUNTS"); list != "" && len(c.Accounts) == 0 {
		c.Accounts, c.azuriteAccounts = []string{list}, true
	}
	return nil
}
