package serve

import (
	"net"
	"os"

	"github.com/spf13/pflag"
)

// azurite are the flags by which Azurite is started, so that a script needs only
// another name of the program. The help does not list them.
type azurite struct {
	set *pflag.FlagSet

	host, port, location, debug, password string
	silent, inMemory                      bool

	unusedText   string
	unusedSwitch bool
}

// Of the flags that have no meaning here, those that ask for what is so anyway
// are taken silently, and the rest with a note.
var (
	alwaysSo       = []string{"skipApiVersionCheck", "disableTelemetry"}
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
	f.StringVarP(&a.debug, "debug", "d", "", "--verbose; its file is not written")
	f.StringVar(&a.password, "pwd", "", "password of a PFX file")
	f.BoolVarP(&a.silent, "silent", "s", false, "--quiet")
	f.BoolVar(&a.inMemory, "inMemoryPersistence", false, "--in-memory")
	f.BoolVarP(&a.unusedSwitch, "loose", "L", false, "no meaning")
	for _, name := range append(alwaysSo, unusedSwitches...) {
		f.BoolVar(&a.unusedSwitch, name, false, "no meaning")
	}
	for _, name := range unusedValues {
		f.StringVar(&a.unusedText, name, "", "no meaning")
	}
	f.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
	all.AddFlagSet(f)
	a.set = all
}

// adopt carries Azurite's flags and environment over to c.
func (c *Config) adopt() error {
	a := &c.azurite
	if a.host != "" || a.port != "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return usagef("--listen %q is no host:port", c.Listen)
		}
		if a.host != "" {
			host = a.host
		}
		if a.port != "" {
			port = a.port
		}
		c.Listen = net.JoinHostPort(host, port)
	}
	if a.location != "" {
		c.Data = a.location
	}
	if a.password != "" {
		return usagef("--pwd: PFX files are not supported; turn yours into PEM with \"openssl pkcs12 -nodes -in FILE.pfx -out FILE.pem\" and give FILE.pem as --cert and --key")
	}
	c.Debug = c.Debug || a.debug != ""
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
