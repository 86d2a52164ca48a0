package serve

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/tracing"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server/faults"
)

// Config is the configuration of a server.
type Config struct {
	Listen string // host:port of the protocol
	Admin  string // host:port of health, metrics and profiles; "" selects one by Listen, "off" none

	Data     string // directory of the databases, one below it for each account
	InMemory bool   // databases in memory; Data is not touched

	Backend      pgbackend.Flags // of the accounts without a database of their own
	BackendConns int             // connections to each database of PostgreSQL

	Accounts       []string // NAME:KEY1[:KEY2][@URL], several with semicolons between
	AccountsFile   string   // one account on a line
	DevelopmentKey bool     // serve the development account on any address

	Cert, Key  string // files with a certificate and its key, PEM
	SelfSigned bool   // make a certificate
	OAuth      string // "basic" to accept bearer tokens

	UI         string // "on" for the pages of /ui/ on the admin listener, or "off"
	UIInsecure bool   // also without TLS on an address that other machines can reach

	ReadyFile string // written when the server answers
	AccessLog bool
	LogFormat string // "text" or "json"
	DebugLog  string // file to which details for debugging are logged
	Quiet     bool   // print no banner, log no request

	OTLPEndpoint string // URL to which spans of requests are sent

	FaultsFile string // rules by which requests fail
	Seed       uint64 // of the failures

	BackupDir   string        // "" for no backups
	BackupEvery time.Duration // from one backup to the next
	BackupKeep  int           // backups of each account
	// ArchiveEvery is the longest time after which a write is in the archive of BackupDir.
	ArchiveEvery time.Duration

	CacheBytes   Size // blocks of all databases together
	SegmentBytes Size // of each database's log
	Compression  string

	MaxConns        int
	MaxConnsPerAddr int

	Version        string
	Stdout, Stderr io.Writer

	Typed func(flag string) bool // whether a flag is on the command line, and not from the environment

	flags   *pflag.FlagSet // all flags of the command, nil without a call of Flags
	azurite azurite
	rules   []faults.Rule // of FaultsFile, nil without one

	azuriteAccounts bool // Accounts are those of AZURITE_ACCOUNTS

	backend *pgbackend.URL // of Backend, nil without one

	system fs.FS // has the limit of memory; nil for the file system of this machine
}

// The defaults that flags show.
const (
	defaultListen          = "127.0.0.1:10002"
	compressFast           = "fast" // --compression
	compressSmall          = "small"
	defaultCacheBytes      = 48 << 20
	defaultSegmentBytes    = 16 << 20
	defaultMaxConns        = 8192
	defaultMaxConnsPerAddr = 64
	defaultBackupEvery     = time.Hour
	defaultBackupKeep      = 24
	defaultArchiveEvery    = time.Minute
	defaultBackendConns    = 32
	minBackendConns        = 1
	adminOff               = "off"
	minCacheBytes          = 1 << 20
	minSegmentBytes        = 64 << 10
	maxSegmentBytes        = 1 << 30
)

// drainTime limits the time for running requests to finish after a signal.
const drainTime = 30 * time.Second

// UsageError is the error of an invalid command line or environment.
type UsageError struct{ text string }

// Error describes the invalid value and its flag.
func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// typed reports whether a flag is on the command line.
func (c *Config) typed(flag string) bool { return c.Typed != nil && c.Typed(flag) }

// backupFlag returns the name of a flag that needs --backup-dir and is set, or "".
func (c *Config) backupFlag() string {
	for _, name := range []string{"backup-every", "backup-keep", "archive-every"} {
		if c.flags != nil && c.flags.Changed(name) {
			return name
		}
	}
	return ""
}

// emptyFlag returns the name of a flag with secrets that is given without a value, or "". Its
// absence would mean another server. The command line refuses the other flags.
func (c *Config) emptyFlag() string {
	switch {
	case slices.Contains(c.Accounts, ""):
		return "account"
	case c.Backend.URL == "" && c.typed(pgbackend.Flag):
		return pgbackend.Flag
	}
	return ""
}

// ParseCompression returns the compression that --compression names, or a *UsageError.
func ParseCompression(method string) (engine.Compression, error) {
	switch method {
	case compressFast:
		return engine.CompressFast, nil
	case compressSmall:
		return engine.CompressSmall, nil
	}
	return 0, usagef("--compression %q: must be fast or small", method)
}

// check returns an error for invalid values of flags.
func (c *Config) check() error {
	switch {
	case c.emptyFlag() != "":
		return usagef("--%s is empty: give its value, or omit it", c.emptyFlag())
	case c.LogFormat != "text" && c.LogFormat != "json":
		return usagef("--log-format %q: must be text or json", c.LogFormat)
	case c.OAuth != "" && c.OAuth != "basic":
		return usagef("--oauth %q: must be basic", c.OAuth)
	case c.UI != uiOn && c.UI != uiOff:
		return usagef("--ui %q: must be on or off", c.UI)
	case c.UIInsecure && c.typed("ui-insecure") && (c.UI == uiOff || c.Admin == adminOff):
		return usagef("--ui-insecure is for the pages on the admin listener, which --ui off and --admin off exclude")
	case c.Quiet && c.typed("access-log"):
		return usagef("--access-log does nothing with --quiet, which logs no requests: remove one of the two")
	case c.typed("ui") && c.UI == uiOn && c.Admin == adminOff:
		return usagef("--ui on needs the admin listener: remove --admin off")
	case c.MaxConns < 1:
		return usagef("--max-conns %d: must be at least 1", c.MaxConns)
	case c.MaxConnsPerAddr < 1:
		return usagef("--max-conns-per-addr %d: must be at least 1", c.MaxConnsPerAddr)
	case c.SegmentBytes < minSegmentBytes || c.SegmentBytes > maxSegmentBytes:
		return usagef("--segment-size %s: must be between 64KiB and 1GiB%s", &c.SegmentBytes, unitOf(c.SegmentBytes))
	case c.CacheBytes != 0 && c.CacheBytes < minCacheBytes:
		return usagef("--cache-size %s: must be at least 1MiB, or 0 for none%s", &c.CacheBytes, unitOf(c.CacheBytes))
	case c.BackupDir == "" && c.backupFlag() != "":
		return usagef("--%s is for the backups in --backup-dir: add --backup-dir DIR", c.backupFlag())
	case hint.IsURL(c.BackupDir):
		return usagef("--backup-dir is a URL, and must be a path: mount that storage, and give the directory")
	case c.BackupDir != "" && c.BackupEvery < time.Second:
		return usagef("--backup-every %s: must be at least 1s", c.BackupEvery)
	case c.BackupDir != "" && c.ArchiveEvery < time.Second:
		return usagef("--archive-every %s: must be at least 1s", c.ArchiveEvery)
	case c.BackupDir != "" && c.BackupKeep < 1:
		return usagef("--backup-keep %d: must be at least 1", c.BackupKeep)
	case c.BackendConns < minBackendConns:
		return usagef("--backend-conns %d: must be at least %d", c.BackendConns, minBackendConns)
	case c.Backend.URL != "" && c.InMemory:
		return usagef("--backend and --in-memory exclude each other")
	case c.BackupDir != "" && c.InMemory:
		return usagef("--backup-dir and --in-memory exclude each other")
	case (c.Cert == "") != (c.Key == ""):
		return usagef("--cert and --key require each other: a certificate and its key, in PEM")
	case c.Cert != "" && c.SelfSigned:
		return usagef("--self-signed and --cert exclude each other")
	case c.OAuth != "" && !c.tls():
		return usagef("--oauth basic needs TLS, because anybody who sees a bearer token can use it: add --cert and --key, or --self-signed")
	}
	if err := c.parseBackend(); err != nil {
		return err
	}
	if _, err := ParseCompression(c.Compression); err != nil {
		return err
	}
	if c.OTLPEndpoint != "" {
		var err error
		if c.OTLPEndpoint, err = tracing.Endpoint(c.OTLPEndpoint); err != nil {
			return usagef("--otlp-endpoint: %v", err)
		}
	}
	if c.Cert != "" {
		// Check the certificate before the server opens anything. It is read again
		// when it is used.
		if _, err := c.givenCertificate(); err != nil {
			return err
		}
	}
	return nil
}

// tls reports whether the server uses TLS.
func (c *Config) tls() bool { return c.Cert != "" || c.SelfSigned }

func (c *Config) scheme() string {
	if c.tls() {
		return "https"
	}
	return "http"
}

// say prints a line to standard error unless --quiet is set.
func (c *Config) say(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintf(c.Stderr, "tablerock: "+format+"\n", args...)
	}
}
