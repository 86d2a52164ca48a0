package serve

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Flags adds the flags of the command to f. Parsing them sets c.
func (c *Config) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Listen, "listen", defaultListen, "`address` of the service; port 0 selects a free one")
	f.StringVar(&c.Admin, "admin", "", "`address` of health, metrics and profiles, or off (default 127.0.0.1:10012, or a free port if that of --listen is 0)")
	f.BoolVar(&c.InMemory, "in-memory", false, "keep all data in memory, and lose it at the end")
	f.IntVar(&c.BackendConns, "backend-conns", defaultBackendConns, "`number` of connections to each database of --backend")
	f.Var(&accountList{&c.Accounts}, "account", "serve this account, `NAME:KEY1[:KEY2][@URL]`, with keys in base64, in the database of PostgreSQL at the URL; "+
		"repeat the flag for several accounts, or separate them by semicolons "+
		"(other users of this machine can see the command line, so prefer --accounts-file)")
	f.StringVar(&c.AccountsFile, "accounts-file", "", "serve the accounts in this `file`, one NAME:KEY1[:KEY2][@URL] per line; only its owner may have access")
	f.BoolVar(&c.DevelopmentKey, "insecure-dev-key", false, "serve devstoreaccount1 with its public key even if other machines can reach the server")
	f.StringVar(&c.Cert, "cert", "", "use TLS with the certificate in this `file`, PEM")
	f.StringVar(&c.Key, "key", "", "`file` with the key of --cert, PEM")
	f.BoolVar(&c.SelfSigned, "self-signed", false, "use TLS with a new certificate, which clients have to trust explicitly")
	f.StringVar(&c.OAuth, "oauth", "", "accept bearer tokens; `basic` checks lifetime, issuer and audience, but no signature")
	f.StringVar(&c.UI, "ui", uiOn, "pages of /ui/ on the admin listener: on or off; on an address that other machines can reach they need --cert")
	f.BoolVar(&c.UIInsecure, "ui-insecure", false, "serve the pages of /ui/ without TLS to other machines, which sends keys and data readable over the network")
	f.StringVar(&c.ReadyFile, "ready-file", "", "write a `file` with the address of the service when it is ready")
	f.BoolVar(&c.AccessLog, "access-log", false, "log each request to standard error")
	f.StringVar(&c.LogFormat, "log-format", "text", "`format` of the log: text or json")
	f.StringVar(&c.OTLPEndpoint, "otlp-endpoint", "", "send a span of each request to the collector of OpenTelemetry at this `URL`, by OTLP over HTTP")
	f.StringVar(&c.FaultsFile, "faults", "", "make requests fail by the rules in this `file`, JSON, to test the retries of clients; only on loopback")
	f.Uint64Var(&c.Seed, "seed", 0, "`number` that selects the failures of --faults: the same number, the same failures")
	f.StringVar(&c.BackupDir, "backup-dir", "", "back up the databases to this `directory`, on a schedule; \"tablerock restore\" restores them")
	f.DurationVar(&c.BackupEvery, "backup-every", defaultBackupEvery, "`time` from one backup to the next")
	f.IntVar(&c.BackupKeep, "backup-keep", defaultBackupKeep, "`number` of backups of each account to keep")
	f.DurationVar(&c.ArchiveEvery, "archive-every", defaultArchiveEvery, "`time` after which a write is archived in --backup-dir")
	f.Var(&c.CacheBytes, "cache-size", "memory for blocks of sstables, shared by all accounts, at least 1MiB, or 0 for none")
	f.Var(&c.SegmentBytes, "segment-size", "memory and disk for each of up to four segments of an account's log, 64KiB to 1GiB")
	f.StringVar(&c.Compression, "compression", compressFast,
		"`method` for files that stay for long: fast (s2), or small (Zstandard), a seventh to a fifth smaller for several times the CPU time")
	f.IntVar(&c.MaxConns, "max-conns", defaultMaxConns, "above this `number` of connections, close those that are idle for longest")
	f.IntVar(&c.MaxConnsPerAddr, "max-conns-per-addr", defaultMaxConnsPerAddr, "refuse connections above this `number` from one address other than loopback")
	c.CacheBytes, c.SegmentBytes = defaultCacheBytes, defaultSegmentBytes
	f.Lookup("cache-size").DefValue = c.CacheBytes.String()
	f.Lookup("segment-size").DefValue = c.SegmentBytes.String()
	c.azurite.flags(f)
	c.flags = f
}

// accountList is the value of --account. It accepts any text, so that no message of package
// pflag contains a key. Config.accounts checks it.
type accountList struct{ list *[]string }

// Set appends accounts.
func (l *accountList) Set(s string) error {
	*l.list = append(*l.list, s)
	return nil
}

// Type returns the name of the value in the help.
func (*accountList) Type() string { return "account" }

// String returns "", because an account has secrets.
func (*accountList) String() string { return "" }

// Size is a flag value in bytes: a number, optionally followed by KiB, MiB or GiB.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// Set parses s.
func (z *Size) Set(s string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*z = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("must be a number, optionally followed by KiB, MiB or GiB")
}

// Type returns the name of the value in the help.
func (*Size) Type() string { return "size" }

// String returns the size in the largest unit that divides it.
func (z *Size) String() string {
	for _, u := range units {
		if n := int64(*z); n%u.bytes == 0 && n != 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}

// unitOf says how a unit is written if the size z, which is too small, may lack one.
func unitOf(z Size) string {
	if z > 0 && z < 1<<10 {
		return fmt.Sprintf("; a number without a unit is bytes: write %dMiB", z)
	}
	return ""
}
