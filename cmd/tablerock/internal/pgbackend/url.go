// Package pgbackend keeps the data of commands and servers in databases of PostgreSQL: it
// parses their URLs, opens them, one connection pool for each, and describes their errors and
// what they promise. No text that it returns has a password.
package pgbackend

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// accountParameter is the parameter of a URL that names the account. It is not for the driver.
const accountParameter = "account"

// shown are the parameters that String keeps: they say where the tables are, and how a command
// that is given the text connects to them.
var shown = []string{
	"host", "port", "dbname", "user", "service", "servicefile", "passfile", "search_path", "options",
	"sslmode", "sslrootcert", "sslcert", "sslkey",
}

// URL is the address of a database, and perhaps of an account in it. Equal URLs are the same
// database.
type URL struct {
	connection string // for the driver
	text       string // without secrets; it tells databases and schemas apart
	account    string // "" for none
	password   bool
}

// Is reports whether text is the URL of a database, valid or not.
func Is(text string) bool {
	lower := strings.ToLower(text)
	return strings.HasPrefix(lower, "postgres://") || strings.HasPrefix(lower, "postgresql://")
}

// The errors of Parse. They do not contain the text, which can have a password at any place.
var (
	errNoURL   = errors.New("a database of PostgreSQL is given as postgres://USER@HOST/DATABASE")
	errBadURL  = errors.New("not a valid URL; write it as postgres://USER@HOST/DATABASE, and in a password / as %2F, @ as %40, ; as %3B and % as %25")
	errAccount = errors.New("the parameter account of the URL is not one name of 3 to 24 lower-case letters and digits")
)

// Parse parses postgres://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?PARAMETERS] by
// the rules of psql. The parameter account names an account; the driver gets all others.
func Parse(text string) (*URL, error) {
	_, rest, _ := strings.Cut(text, "://")
	if !Is(text) {
		return nil, errNoURL
	}
	u := &URL{}
	user := ""
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, _, u.password = strings.Cut(rest[:i], ":")
		u.connection, rest = rest[:i+1], rest[i+1:]
		user += "@"
	}
	server, query, _ := strings.Cut(rest, "?")
	hosts, _, _ := strings.Cut(server, "/")
	if !validHosts(hosts) || strings.ContainsAny(server, "@#") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7F }) {
		return nil, errBadURL
	}
	all, visible, err := u.parameters(query)
	if err != nil {
		return nil, err
	}
	u.connection = "postgres://" + u.connection + server + all
	u.text = "postgres://" + user + server + visible
	return u, nil
}

// validHosts checks the ports of a list of hosts. With an unescaped / in the password, they are
// a part of it.
func validHosts(hosts string) bool {
	for host := range strings.SplitSeq(hosts, ",") {
		if i := strings.LastIndexByte(host, ']'); i >= 0 {
			host = host[i+1:] // behind an address of IPv6
		}
		if _, port, _ := strings.Cut(host, ":"); strings.Trim(port, "0123456789") != "" {
			return false
		}
	}
	return true
}

// parameters returns the parameters for the driver and those to show, each with its ?. It sets
// u.account and u.password.
func (u *URL) parameters(query string) (all, visible string, err error) {
	var pairs, show []string
	for pair := range strings.SplitSeq(query, "&") {
		raw, value, ok := strings.Cut(pair, "=")
		name, err := url.PathUnescape(raw)
		switch {
		case pair == "":
			continue
		case !ok || err != nil:
			return "", "", errBadURL
		case name == accountParameter:
			if u.account != "" || !sharedkey.IsAccountName(value) {
				return "", "", errAccount
			}
			u.account = value
			continue
		case name == "password" || name == "sslpassword":
			u.password = true
		case slices.Contains(shown, raw):
			show = append(show, pair)
		}
		pairs = append(pairs, pair)
	}
	slices.SortStableFunc(pairs, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	if len(pairs) > 0 {
		all = "?" + strings.Join(pairs, "&")
	}
	if len(show) > 0 {
		visible = "?" + strings.Join(show, "&")
	}
	return all, visible, nil
}

// nameOf returns the name in a pair. The last one of a name counts.
func nameOf(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return name
}

// String returns the URL without passwords, and with the parameters in shown.
func (u *URL) String() string { return u.text }

// Account returns the account that the URL names, "" for none.
func (u *URL) Account() string { return u.account }

// Same reports whether both are the same database.
func (u *URL) Same(v *URL) bool { return u != nil && v != nil && u.connection == v.connection }

// secrets match the passwords in URLs of databases.
var secrets = regexp.MustCompile(`(?i)(postgres(?:ql)?://[^:@/\s]*):\S*@|([?&](?:ssl)?password=)[^&\s"']*`)

// Redact removes the passwords of URLs of databases from a text, such as an error that
// repeats an argument.
func Redact(text string) string {
	return secrets.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasSuffix(found, "@") {
			scheme := strings.Index(found, "://") + len("://")
			name, _, _ := strings.Cut(found[scheme:], ":")
			return found[:scheme] + name + "@"
		}
		name, _, _ := strings.Cut(found, "=")
		return name + "="
	})
}
