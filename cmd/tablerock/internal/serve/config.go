package serve

import (
	"fmt"
	"io"
	"time"
)

// Config says what to serve, where and how.
type Config struct {
	Listen string // host:port of the protocol
	Admin  string // host:port of health, metrics and profiles, "" for one that goes with Listen, "off" for none

	Data     string // directory of the databases, one below it for each account
	InMemory bool   // databases in memory; Data is not touched

	Accounts       []string // NAME:KEY1[:KEY2], several with semicolons between
	AccountsFile   string   // one account on a line
	DevelopmentKey bool     // serve the development account on any address

	Cert, Key  string // files with a certificate and its key, PEM
	SelfSigned bool   // make a certificate
	OAuth      string // "basic" to accept bearer tokens

	ReadyFile string // written when the server answers
	AccessLog bool
	LogFormat string // "text" or "json"
	Debug     bool   // log what is only of interest when something is wrong
	Quiet     bool   // print no banner, log no request

	CacheBytes   Size // blocks of all databases together
	SegmentBytes Size // of each database's log

	MaxConns        int
	MaxConnsPerAddr int

	Version        string
	Stdout, Stderr io.Writer

	azurite azurite

	azuriteAccounts bool // Accounts are those of AZURITE_ACCOUNTS
}

// The defaults that flags show.
const (
	defaultListen          = "127.0.0.1:10002"
	defaultCacheBytes      = 48 << 20
	defaultSegmentBytes    = 16 << 20
	defaultMaxConns        = 8192
	defaultMaxConnsPerAddr = 64
	adminOff               = "off"
	minSegmentBytes        = 64 << 10
	maxSegmentBytes        = 1 << 30
)

// gcPercent is how much garbage may lie around, in percent of what is live, unless
// GOGC says it. Most of what is live is the cache, which makes no garbage: a
// server would hold twice its size for nothing.
const gcPercent = 75

// drainTime is how long requests that run may take to finish once the server is
// told to stop.
const drainTime = 30 * time.Second

// UsageError is a command line, or an environment, that means nothing.
type UsageError struct{ text string }

// Error says what makes no sense, and which flag would.
func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// check refuses values that flags of the right form can have.
func (c *Config) check() error {
	switch {
	case c.LogFormat != "text" && c.LogFormat != "json":
		return usagef("--log-format %q: there are text and json", c.LogFormat)
	case c.OAuth != "" && c.OAuth != "basic":
		return usagef("--oauth %q: there is basic", c.OAuth)
	case c.MaxConns < 1:
		return usagef("--max-conns %d: at least 1", c.MaxConns)
	case c.MaxConnsPerAddr < 1:
		return usagef("--max-conns-per-addr %d: at least 1", c.MaxConnsPerAddr)
	case c.SegmentBytes < minSegmentBytes || c.SegmentBytes > maxSegmentBytes:
		return usagef("--segment-size %s: between 64KiB and 1GiB", &c.SegmentBytes)
	case (c.Cert == "") != (c.Key == ""):
		return usagef("--cert and --key come together: a certificate and its key, in PEM")
	case c.Cert != "" && c.SelfSigned:
		return usagef("--self-signed makes a certificate, and --cert gives one: choose")
	case c.OAuth != "" && !c.tls():
		return usagef("--oauth basic needs TLS, since whoever hears a bearer token can use it: add --cert and --key, or --self-signed")
	}
	if c.Cert != "" {
		// It is read again when it is used; here it is only judged, before anything
		// is touched.
		if _, err := c.givenCertificate(); err != nil {
			return err
		}
	}
	return nil
}

// tls reports whether the protocol is spoken over TLS.
func (c *Config) tls() bool { return c.Cert != "" || c.SelfSigned }

func (c *Config) scheme() string {
	if c.tls() {
		return "https"
	}
	return "http"
}

// say prints a line for people on standard error, unless they want none.
func (c *Config) say(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintf(c.Stderr, "tablerock: "+format+"\n", args...)
	}
}
