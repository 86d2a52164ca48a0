package serve

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Flags adds the flags of the command to f; they fill c.
func (c *Config) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Listen, "listen", defaultListen, "`address` of the service; port 0 takes any that is free")
	f.StringVar(&c.Admin, "admin", "", "`address` of health, metrics and profiles, or off (default 127.0.0.1:10012, or any free port if that of --listen is 0)")
	f.BoolVar(&c.InMemory, "in-memory", false, "keep everything in memory and lose it at the end")
	f.Var(&accountList{&c.Accounts}, "account", "serve this account, `NAME:KEY1[:KEY2]`, keys in base64; may be repeated, and several may have semicolons between (other users of this machine can see a command line: prefer --accounts-file)")
	f.StringVar(&c.AccountsFile, "accounts-file", "", "serve the accounts in this `file`, one NAME:KEY1[:KEY2] on a line, readable by its owner alone")
	f.BoolVar(&c.DevelopmentKey, "insecure-dev-key", false, "serve devstoreaccount1 with its key, which everybody knows, also where others can reach it")
	f.StringVar(&c.Cert, "cert", "", "speak TLS with the certificate in this `file`, PEM")
	f.StringVar(&c.Key, "key", "", "`file` with the key of --cert, PEM")
	f.BoolVar(&c.SelfSigned, "self-signed", false, "speak TLS with a certificate made here, which clients have to be told to trust")
	f.StringVar(&c.OAuth, "oauth", "", "accept bearer tokens; `basic` looks at lifetime, issuer and audience, and at no signature")
	f.StringVar(&c.ReadyFile, "ready-file", "", "write a `file` that says where the service is, once it answers")
	f.BoolVar(&c.AccessLog, "access-log", false, "log each request on standard error")
	f.StringVar(&c.LogFormat, "log-format", "text", "`format` of the log: text or json")
	f.Var(&c.CacheBytes, "cache-size", "memory for blocks of sorted files, all accounts together")
	f.Var(&c.SegmentBytes, "segment-size", "memory and disk for a segment of an account's log; there are up to four (64KiB to 1GiB)")
	f.IntVar(&c.MaxConns, "max-conns", defaultMaxConns, "close the connections that are idle for longest beyond this `number`")
	f.IntVar(&c.MaxConnsPerAddr, "max-conns-per-addr", defaultMaxConnsPerAddr, "refuse connections of one address beyond this `number`; there is no such limit on loopback")
	c.CacheBytes, c.SegmentBytes = defaultCacheBytes, defaultSegmentBytes
	f.Lookup("cache-size").DefValue = c.CacheBytes.String()
	f.Lookup("segment-size").DefValue = c.SegmentBytes.String()
	c.azurite.flags(f)
}

// accountList is the value of --account. It takes anything, so that no message
// about flags ever shows a key; what it took is judged later.
type accountList struct{ list *[]string }

// Set appends accounts.
func (l *accountList) Set(s string) error {
	*l.list = append(*l.list, s)
	return nil
}

// Type names the value in the help.
func (*accountList) Type() string { return "account" }

// String is empty: an account has secrets.
func (*accountList) String() string { return "" }

// Size is a flag's value in bytes: a number, alone or with KiB, MiB or GiB.
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
	return fmt.Errorf("a size is a number with KiB, MiB, GiB or nothing behind it")
}

// Type names the value in the help.
func (*Size) Type() string { return "size" }

// String is the size in the largest unit that divides it.
func (z *Size) String() string {
	for _, u := range units {
		if n := int64(*z); n%u.bytes == 0 && n != 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}
